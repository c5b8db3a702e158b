#include "tools/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "runtime/engine.h"

namespace eider {
namespace {

constexpr const char* kCacheGroup = "Weight cache";
constexpr const char* kSamplingGroup = "Sampling (in the order of --samplers; a model's own defaults win)";

/// The whole of `text` as a number, or nothing.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A flag for a float in low..high; `meaning` stands in the help before the default.
void add_float_flag(CLI::App& command, const std::string& names, float& value, float low, float high,
                    const std::string& meaning) {
  const auto parse = [&value, low, high](const std::string& text) -> Status {
    const auto number = parse_number<float>(text);
    if (!number || !(*number >= low && *number <= high)) return error("a number from {} to {}", low, high);
    value = *number;
    return {};
  };
  add_value_flag(command, names, "X", parse, fmt::format("{} [{:g}]", meaning, value))->group(kSamplingGroup);
}

/// "15043+1.5" or "15043-1.5", as llama.cpp spells it; "15043-inf" bans a token.
Status parse_logit_bias(const std::string& text, std::map<TokenId, float>& biases) {
  const std::size_t sign = text.find_first_of("+-");
  if (sign != std::string::npos && sign > 0) {
    const auto id = parse_number<TokenId>(std::string_view(text).substr(0, sign));
    const auto size = parse_number<float>(std::string_view(text).substr(sign + 1));
    const bool ban = size && std::isinf(*size) && text[sign] == '-';
    if (id && *id >= 0 && size && *size >= 0 && (std::isfinite(*size) || ban)) {
      biases[*id] = text[sign] == '-' ? -*size : *size;
      return {};
    }
  }
  return error("a token id, + or -, and a number, as in 15043+1.5");
}

Status parse_kv_type(const std::string& text, KvType& type) {
  if (text == "f16")
    type = KvType::kF16;
  else if (text == "f32")
    type = KvType::kF32;
  else
    return error("f16 or f32");
  return {};
}

}  // namespace

Status parse_size(const std::string& text, std::optional<std::int64_t>& bytes) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view digits = text;
  double unit = 1;
  if (const std::size_t power = digits.empty() ? kUnits.npos : kUnits.find(digits.back());
      power != kUnits.npos) {
    unit = std::ldexp(1.0, 10 * static_cast<int>(power + 1));
    digits.remove_suffix(1);
  }
  constexpr double kMost = 1e15;
  const auto number = parse_number<double>(digits);
  if (!number || !(*number >= 0 && *number * unit <= kMost))
    return error("a size in bytes, or with K, M, G or T, as in 20G");
  bytes = static_cast<std::int64_t>(*number * unit);
  return {};
}

CLI::Option* add_value_flag(CLI::App& command, const std::string& names, const std::string& type,
                            std::function<Status(const std::string&)> parse, const std::string& help,
                            const std::string& group) {
  const std::string name = names.substr(names.rfind(',') + 1);
  const auto read = [name, parse = std::move(parse)](const CLI::results_t& values) {
    for (const std::string& value : values) {
      const Status status = parse(value);
      if (!status.ok())
        throw CLI::ValidationError(
            name, fmt::format("'{}' is not allowed; expected {}", value, status.error().message()));
    }
    return true;
  };
  return command.add_option(names, read, help)
      ->type_name(type)
      ->group(group)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_pair_flag(CLI::App& command, const std::string& names, const std::string& type,
                   std::vector<std::string>& values, const std::string& help, const std::string& group) {
  command.add_option(names, values, help)
      ->type_name(type)
      ->type_size(2)  // expected(2) would take a second value such as "-t 2" for a flag
      ->expected(1)
      ->group(group);
}

void add_text_flag(CLI::App& command, const std::string& names, const std::string& type,
                   std::optional<std::string>& value, const std::string& help, const std::string& group) {
  const auto store = [&value](const std::string& text) -> Status {
    value = text;
    return {};
  };
  add_value_flag(command, names, type, store, help, group);
}

void add_repeated_flag(CLI::App& command, const std::string& names, const std::string& type,
                       std::function<Status(const std::string&)> parse, const std::string& help,
                       const std::string& group) {
  add_value_flag(command, names, type, std::move(parse), help, group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_switch(CLI::App& command, const std::string& names, bool& on, const std::string& help,
                const std::string& group) {
  command.add_flag(names, on, help)->group(group);
}

CLI::Option* add_integer_flag(CLI::App& command, const std::string& names,
                              std::function<void(std::int64_t)> store, std::int64_t low, std::int64_t high,
                              const std::string& help, const std::string& group) {
  const auto parse = [store = std::move(store), low, high](const std::string& text) -> Status {
    const auto number = parse_number<std::int64_t>(text);
    if (!number || *number < low || *number > high) return error("an integer from {} to {}", low, high);
    store(*number);
    return {};
  };
  return add_value_flag(command, names, "N", parse, help, group);
}

std::vector<GivenFlag> given_flags(const CLI::App& command) {
  std::vector<GivenFlag> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    GivenFlag& flag = given.emplace_back();
    flag.name = name;
    if (option->get_items_expected_max() == 0)
      flag.words.push_back(name);
    else
      for (const std::string& value : option->results()) flag.words.push_back(name + "=" + value);
  }
  return given;
}

Result<std::vector<GivenFlag>> parse_words(const std::function<void(CLI::App&)>& add_flags,
                                           std::vector<std::string> words) {
  CLI::App parser;
  add_flags(parser);
  std::transform(words.begin(), words.end(), words.begin(), spell_out_flag);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    parser.parse(std::move(words));
  } catch (const CLI::ParseError& problem) {
    return error("{}", problem.what());
  }
  return given_flags(parser);
}

CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& footer, std::function<Status()> choose) {
  CLI::App* command = program.add_subcommand(name, description);
  command->footer(footer);
  command->callback([choose = std::move(choose)] {
    const Status status = choose();
    if (!status.ok()) throw CLI::ValidationError(status.error().message());
  });
  return *command;
}

CLI::App& add_command_group(CLI::App& program, const std::string& name, const std::string& description,
                            const std::string& footer) {
  CLI::App* group = program.add_subcommand(name, description);
  group->require_subcommand(1);
  group->footer(footer);
  return *group;
}

void add_words(CLI::App& command, const std::string& name, const std::string& type,
               std::vector<std::string>& words, const std::string& help) {
  command.add_option(name, words, help)->type_name(type);
}

void add_model_flag(CLI::App& command, EngineFlags& flags, const std::string& help) {
  command.add_option("-m,--model", flags.model, help)
      ->type_name("PATH")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_context_flag(CLI::App& command, EngineFlags& flags) {
  add_integer_flag(
      command, "-c,--ctx-size", [&flags](std::int64_t n) { flags.context = n; }, 1, kMaxContext,
      "Most tokens of prompt and answer together [the model's own, less where memory is short]")
      ->group(kEngineGroup);
}

void add_threads_flag(CLI::App& command, EngineFlags& flags) {
  add_integer_flag(
      command, "-t,--threads", [&flags](std::int64_t n) { flags.threads = static_cast<int>(n); }, 1,
      kMaxThreads, "Threads [the physical cores that this process may use]")
      ->group(kEngineGroup);
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  add_threads_flag(command, flags);
  add_integer_flag(
      command, "--ubatch-size", [&flags](std::int64_t n) { flags.max_batch_tokens = n; }, 1, kMaxBatchTokens,
      fmt::format("(-ub) Most prompt tokens computed at once [{}]", flags.max_batch_tokens))
      ->group(kEngineGroup);
  add_backend_flags(command, flags);
}

void add_fp8_flag(CLI::App& command, EngineFlags& flags) {
  const auto parse = [&flags](const std::string& text) -> Status {
    for (const Fp8Form form : {Fp8Form::kFp8, Fp8Form::kFp9}) {
      if (text != fp8_form_name(form)) continue;
      flags.fp8_as = form;
      return {};
    }
    return error("fp8 or fp9");
  };
  add_value_flag(
      command, "--fp8-as", "FORM", parse,
      "How the cpu backend keeps FP8 weights: fp8, or fp9, which is 9 bits; the bits of results are "
      "the same [the faster one, measured once a machine]")
      ->group(kEngineGroup);
}

void add_backend_flags(CLI::App& command, EngineFlags& flags) {
  add_value_flag(
      command, "--kv-type", "TYPE",
      [&flags](const std::string& text) { return parse_kv_type(text, flags.kv_type); },
      "How keys and values are stored: f16 or f32 [f16]")
      ->group(kEngineGroup);
  const auto parse_backend = [&flags](const std::string& text) -> Status {
    if (text != "cpu" && text != "reference") return error("cpu or reference");
    flags.backend = text;
    return {};
  };
  add_value_flag(command, "--backend", "NAME", parse_backend,
                 "What computes: cpu, or reference (slow, the definition); the bits are the same [cpu]")
      ->group(kEngineGroup);
  const auto keep_isa = [&flags](const std::string& text) -> Status {
    flags.isa = text;
    return {};
  };
  add_value_flag(command, "--isa", "NAME", keep_isa,
                 "Instruction set of the cpu backend; --version lists them [the best that this machine has]")
      ->group(kEngineGroup);
  add_fp8_flag(command, flags);
  command.add_flag("--no-weight-cache", flags.cache.off, "Neither reads nor keeps prepared weights")
      ->group(kCacheGroup);
  add_cache_flags(command, flags.cache);
}

void add_cache_directory_flag(CLI::App& command, CacheFlags& flags) {
  const auto keep = [&flags](const std::string& text) -> Status {
    if (text.empty()) return error("the path of a directory");
    flags.directory = text;
    return {};
  };
  add_value_flag(command, "--weight-cache", "DIR", keep,
                 "Where prepared weights are kept [~/.cache/eider/prepared, or below $XDG_CACHE_HOME]")
      ->group(kCacheGroup);
}

void add_cache_flags(CLI::App& command, CacheFlags& flags) {
  add_cache_directory_flag(command, flags);
  add_value_flag(
      command, "--cache-size", "SIZE",
      [&flags](const std::string& text) { return parse_size(text, flags.budget); },
      "Most that all prepared weights may take, as in 20G; those used least recently go first [half of the "
      "free disk]")
      ->group(kCacheGroup);
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();
  SamplerOptions& options = flags.options;
  add_float_flag(command, "--temp", options.temperature, 0, 100,
                 "Temperature; 0 always takes the likeliest token");
  add_integer_flag(
      command, "--top-k", [&options](std::int64_t k) { options.top_k = k; }, 0, kMaxTokens,
      fmt::format("Keep the k likeliest tokens; 0: all [{}]", options.top_k))
      ->group(kSamplingGroup);
  add_float_flag(command, "--top-p", options.top_p, 0, 1,
                 "Keep the likeliest tokens that reach this probability; 1: all");
  add_float_flag(command, "--min-p", options.min_p, 0, 1,
                 "Keep tokens at least this likely, relative to the likeliest; 0: all");
  add_float_flag(command, "--typical", options.typical_p, 0, 1,
                 "Keep the most typical tokens that reach this probability; 1: all");
  add_float_flag(command, "--repeat-penalty", options.repeat_penalty, 0.01F, 100,
                 "Divides the logits of tokens seen lately; 1: off");
  add_float_flag(command, "--frequency-penalty", options.frequency_penalty, -100, 100,
                 "Subtracted for each time a token was seen lately; 0: off");
  add_float_flag(command, "--presence-penalty", options.presence_penalty, -100, 100,
                 "Subtracted once from tokens seen lately; 0: off");
  add_integer_flag(
      command, "--repeat-last-n", [&options](std::int64_t n) { options.penalty_last_n = n; }, -1, kMaxTokens,
      fmt::format("How many tokens back \"lately\" reaches; -1: all, 0: none [{}]", options.penalty_last_n))
      ->group(kSamplingGroup);
  add_repeated_flag(
      command, "-l,--logit-bias", "ID(+|-)X",
      [&options](const std::string& text) { return parse_logit_bias(text, options.logit_bias); },
      "Added to a token's logit, as in 15043+1.5 (15043-inf bans it); may be given again", kSamplingGroup);
  const auto parse_stages = [&options](const std::string& text) -> Status {
    Result<std::vector<SamplerStage>> stages = parse_sampler_stages(text);
    if (!stages.ok()) return error("names out of {}, each at most once", default_sampler_stages());
    options.stages = std::move(stages).value();
    return {};
  };
  add_value_flag(command, "--samplers", "A;B;...", parse_stages,
                 fmt::format("Which steps, in which order [{}]", default_sampler_stages()))
      ->group(kSamplingGroup);
  const auto parse_seed = [&flags](const std::string& text) -> Status {
    flags.seed = parse_number<std::uint64_t>(text);
    if (!flags.seed) return error("an integer from 0 to {}", std::numeric_limits<std::uint64_t>::max());
    return {};
  };
  add_value_flag(command, "-s,--seed", "N", parse_seed, "Same seed, same answer [drawn anew, and printed]")
      ->group(kSamplingGroup);
  for (CLI::Option* option : command.get_options())
    if (option->get_group() == kSamplingGroup)
      option->each([&flags, name = option->get_name()](const std::string&) { flags.given.insert(name); });
}

void take_advice(const GenerationConfig& advice, SamplingFlags& flags) {
  const auto take = [&flags](const char* flag, const auto& advised, auto& value) {
    if (advised && !flags.given.contains(flag)) value = static_cast<std::decay_t<decltype(value)>>(*advised);
  };
  take("--temp", advice.temperature, flags.options.temperature);
  take("--top-k", advice.top_k, flags.options.top_k);
  take("--top-p", advice.top_p, flags.options.top_p);
  take("--min-p", advice.min_p, flags.options.min_p);
  take("--repeat-penalty", advice.repetition_penalty, flags.options.repeat_penalty);
}

void add_predict_flag(CLI::App& command, std::int64_t& max_tokens) {
  constexpr std::int64_t kMaxPredict = 1 << 24;
  add_integer_flag(
      command, "-n,--predict", [&max_tokens](std::int64_t n) { max_tokens = n; }, -1, kMaxPredict,
      fmt::format("Most tokens of an answer; -1: until the model ends it or the context is full [{}]",
                  max_tokens))
      ->group("Answer");
}

std::vector<Setting> chat_settings(SamplingFlags sampling, std::int64_t max_tokens) {
  CLI::App flags;
  flags.set_help_flag();
  add_sampling_flags(flags, sampling);
  add_predict_flag(flags, max_tokens);
  std::vector<Setting> settings;
  for (const CLI::Option* option : flags.get_options())
    settings.push_back({option->get_lnames().front(), option->get_description()});
  return settings;
}

Status change_setting(const std::string& name, const std::string& value, SamplingFlags& sampling,
                      std::int64_t& max_tokens) {
  SamplingFlags new_sampling = sampling;
  std::int64_t new_max_tokens = max_tokens;
  CLI::App flags;
  flags.set_help_flag();
  add_sampling_flags(flags, new_sampling);
  add_predict_flag(flags, new_max_tokens);
  if (flags.get_option_no_throw("--" + name) == nullptr)
    return error("'{}' is no setting; /set alone lists them", name);
  try {
    flags.parse(std::vector<std::string>{value, "--" + name});  // CLI11 takes them from the back
  } catch (const CLI::ParseError& problem) {
    return error("{}", problem.what());
  }
  sampling = std::move(new_sampling);
  max_tokens = new_max_tokens;
  return {};
}

std::string spell_out_flag(std::string argument) {
  if (argument == "-ub") return "--ubatch-size";
  if (argument == "-np") return "--parallel";
  return argument;
}

}  // namespace eider
