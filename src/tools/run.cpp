// `eider run`: one prompt in, one answer out, streamed as it is generated. It wires Machine -> Backend ->
// Engine -> Session -> Generation and turns their reports into text, statistics or JSON.
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/generation.h"
#include "runtime/sampler.h"
#include "runtime/thinking.h"
#include "text/json_text.h"
#include "tools/chat_output.h"
#include "tools/chat_prompt.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/generating.h"
#include "tools/input.h"
#include "tools/loading.h"
#include "tools/memory.h"

namespace eider {
namespace {

struct RunFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  std::optional<std::string> prompt;  ///< absent, and no file: stdin
  std::optional<std::string> prompt_file;
  std::optional<std::string> system;
  TemplateFlags chat_template;
  GenerationLimits limits;
  bool raw = false;
  bool json = false;
  bool logits_hash = false;
  bool verbose = false;
};

/// The prompt as given; one newline at the end of a file or of stdin is the editor's, not the prompt's.
Result<std::string> read_prompt(const RunFlags& flags) {
  if (flags.prompt) return *flags.prompt;
  EIDER_TRY(std::string text, read_file_or_stdin(flags.prompt_file));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// The prompt in the words of the chat template.
Result<std::string> render_prompt(const RunFlags& flags, const Tokenizer& tokenizer,
                                  const std::string& prompt) {
  EIDER_TRY(const ChatPrompt chat, ChatPrompt::create(flags.chat_template, tokenizer, flags.engine.model));
  auto messages = nlohmann::ordered_json::array();
  if (flags.system) messages.push_back({{"role", "system"}, {"content", *flags.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return chat.render({{"messages", std::move(messages)}});
}

struct Prompt {
  std::string text;
  std::vector<TokenId> ids;
};

Result<Prompt> encode_prompt(const RunFlags& flags, const Tokenizer& tokenizer, const Terminal& terminal) {
  EIDER_TRY(std::string text, read_prompt(flags));
  if (!flags.raw && !flags.chat_template.file && tokenizer.vocabulary().chat_template.empty()) {
    if (flags.system)
      return error("--system: this model has no chat template that could hold a system message");
    terminal.note("this model has no chat template: the prompt is used as it is");
  } else if (!flags.raw) {
    Result<std::string> rendered = render_prompt(flags, tokenizer, text);
    if (!rendered.ok()) return error("{} (--raw uses the prompt as it is)", rendered.error().message());
    text = std::move(rendered).value();
  }
  std::vector<TokenId> ids = tokenizer.encode(text);
  if (ids.empty()) return error("the prompt is empty");
  if (flags.verbose) terminal.note(fmt::format("prompt: {}\nprompt ids: {}", text, ids));
  return Prompt{std::move(text), std::move(ids)};
}

/// What an answer was, in the terms of --json and of the statistics.
struct Answer {
  std::string text;
  std::vector<TokenId> prompt_ids, ids;
  FinishReason finish_reason = FinishReason::kStop;
  std::uint64_t seed = 0;
  std::uint64_t logits_hash = 0;
  Generation::Timing timing;
  double weights_gb_s = 0;  ///< bytes of weights that decoding read a second, in 10^9
};

std::string to_json(const Answer& answer) {
  const nlohmann::ordered_json object = {{"text", answer.text},
                                         {"ids", answer.ids},
                                         {"prompt_tokens", answer.prompt_ids.size()},
                                         {"prompt_ids", answer.prompt_ids},
                                         {"finish_reason", finish_reason_name(answer.finish_reason)},
                                         {"seed", answer.seed},
                                         {"logits_hash", fmt::format("{:016x}", answer.logits_hash)},
                                         {"ttft_ms", answer.timing.ttft_ms},
                                         {"prompt_tok_s", answer.timing.prompt_tok_s},
                                         {"decode_tok_s", answer.timing.decode_tok_s},
                                         {"tpot_ms", answer.timing.tpot_ms},
                                         {"weights_gb_s", answer.weights_gb_s}};
  return to_json_text(object) + "\n";
}

void report_statistics(const Answer& answer, bool logits_hash, const Terminal& terminal) {
  const Generation::Timing& timing = answer.timing;
  terminal.note(fmt::format("prompt: {} tokens at {:.1f} tok/s, first token after {:.0f} ms (TTFT)",
                            answer.prompt_ids.size(), timing.prompt_tok_s, timing.ttft_ms));
  terminal.note(
      fmt::format("answer: {} tokens at {:.1f} tok/s, {:.1f} ms each (TPOT), {:.2f} GB/s of weights; {}",
                  answer.ids.size(), timing.decode_tok_s, timing.tpot_ms, answer.weights_gb_s,
                  finish_reason_name(answer.finish_reason)));
  if (logits_hash) terminal.note(fmt::format("logits hash: {:016x}", answer.logits_hash));
}

Result<int> run(const RunFlags& flags, const Terminal& terminal) {
  const InterruptGuard interrupt;
  const Machine machine = detect_machine();
  EIDER_TRY(Model model, open_model(flags.engine.model));
  EIDER_TRY(const Tokenizer tokenizer, create_tokenizer(*model.checkpoint));
  Answer answer;
  SamplingFlags advised = flags.sampling;
  take_advice(model.checkpoint->generation_config(), advised);
  SamplerOptions sampling = advised.options;
  sampling.seed = answer.seed = flags.sampling.seed ? *flags.sampling.seed : draw_seed();
  EIDER_TRY(Sampler sampler, Sampler::create(sampling, model.vocab_size));
  EIDER_TRY(Prompt prompt, encode_prompt(flags, tokenizer, terminal));
  AnswerPrinter printer(thought_opened_by(prompt.text));
  answer.prompt_ids = std::move(prompt.ids);

  EIDER_TRY(const Compute compute, create_compute(flags.engine, machine, has_fp8_weights(model)));
  EIDER_TRY(const EngineOptions options,
            settle_options(flags.engine, model, *compute.backend, machine, terminal));
  if (std::ssize(answer.prompt_ids) > options.context)
    return error("the prompt has {} tokens, the context holds {}: use a larger -c or a shorter prompt",
                 answer.prompt_ids.size(), options.context);
  if (flags.verbose)
    terminal.note(fmt::format("{} threads; a context of {} {}", compute.pool->size(), options.context,
                              describe(memory_needs(model, *compute.backend, options))));
  EIDER_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), *compute.backend, options,
                                                              flags.engine.cache, terminal, interrupt));
  if (!flags.sampling.seed) terminal.note(fmt::format("seed: {}", answer.seed));

  Session session = engine->new_session();
  EIDER_TRY(Generation generation, Generation::start(*engine, session, tokenizer, std::move(sampler),
                                                     answer.prompt_ids, flags.limits));
  const auto sink = [&](const std::string& piece) { return flags.json ? Status() : printer.print(piece); };
  EIDER_TRY(answer.text, generate(generation, sink, terminal, interrupt));

  answer.ids.assign(generation.ids().begin(), generation.ids().end());
  answer.finish_reason = generation.finish_reason();
  answer.logits_hash = generation.logits_hash();
  answer.timing = generation.timing();
  answer.weights_gb_s =
      static_cast<double>(bytes_per_token(engine->model().plan)) * answer.timing.decode_tok_s / 1e9;
  if (flags.json)
    EIDER_TRY_STATUS(write_stdout(to_json(answer)));
  else
    EIDER_TRY_STATUS(printer.finish());
  report_statistics(answer, flags.logits_hash || flags.verbose, terminal);
  EIDER_TRY_STATUS(finish_cache(*engine, terminal, interrupt));
  return answer.finish_reason == FinishReason::kCancelled ? kExitInterrupted : kExitSuccess;
}

constexpr const char* kRunExamples = R"(Examples:
  eider run -m model.gguf -p "Why is the sky blue?"
  eider run -m model.gguf --temp 0 -n 64 -p "A haiku"       the likeliest answer
  eider run -m model.gguf --raw -p "Once upon a time" -r .  up to a full stop
  eider run -m model.gguf --seed 7 --json -p Hello | jq .text
  git diff | eider run -m model.gguf --system "Review this change"

The answer goes to stdout, everything else to stderr. Ctrl-C ends the answer
(exit code 130), a second one the program. Exit code 1: a file, the model or the
machine stood in the way; 2: the command line makes no sense.)";

void add_prompt_flags(CLI::App& command, RunFlags& flags) {
  add_text_flag(command, "-p,--prompt", "TEXT", flags.prompt,
                "The prompt [stdin, where that is not a terminal]");
  add_text_flag(command, "-f,--file", "PATH", flags.prompt_file,
                "Reads the prompt from a file, without its last newline; -: stdin");
  add_text_flag(command, "--system", "TEXT", flags.system, "System message for the chat template");
  add_switch(command, "--raw", flags.raw, "Uses the prompt as it is, without the model's chat template");
  add_template_flags(command, flags.chat_template, kOptionsGroup);
}

/// What flags say together; CLI11 checks each by itself.
Status check_prompt_flags(const RunFlags& flags) {
  if (flags.prompt && flags.prompt_file)
    return error("--file: not together with --prompt: the prompt has one source");
  if (flags.system && flags.raw)
    return error("--system: not together with --raw: only a chat template has a system message");
  if (flags.raw && (flags.chat_template.file || !flags.chat_template.variables.empty()))
    return error("--raw: not together with --chat-template-file or --template-args");
  if (!flags.prompt && !flags.prompt_file && isatty(STDIN_FILENO) == 1)
    return error("--prompt: no prompt: give -p TEXT or -f PATH, or pipe text into stdin");
  return {};
}

void add_answer_flags(CLI::App& command, RunFlags& flags) {
  constexpr const char* kGroup = "Answer";
  add_predict_flag(command, flags.limits.max_tokens);
  const auto add_stop = [&flags](const std::string& text) -> Status {
    if (text.empty()) return error("some text");
    flags.limits.stop.push_back(text);
    return {};
  };
  add_repeated_flag(command, "-r,--reverse-prompt,--stop", "TEXT", add_stop,
                    "Text that ends the answer and is not part of it; may be given again", kGroup);
  add_switch(command, "--ignore-eos", flags.limits.ignore_eos, "Goes on where the model would end its turn",
             kGroup);
  add_switch(command, "--json", flags.json, "Prints one JSON object at the end instead of text as it comes",
             kGroup);
  add_switch(command, "--logits-hash", flags.logits_hash,
             "Prints the XXH3-64 of the logits that were sampled from", kGroup);
  add_switch(command, "--verbose", flags.verbose,
             "Shows the rendered prompt, memory, threads and the logits hash", kGroup);
}

}  // namespace

void add_run_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  const auto choose = [flags, &action]() -> Status {
    EIDER_TRY_STATUS(check_prompt_flags(*flags));
    action = [flags](const Terminal& terminal) { return run(*flags, terminal); };
    return {};
  };
  CLI::App& command = add_command(
      program, "run", "Answers one prompt: text to stdout, everything else to stderr", kRunExamples, choose);
  add_model_flag(command, flags->engine);
  add_prompt_flags(command, *flags);
  add_answer_flags(command, *flags);
  add_context_flag(command, flags->engine);
  add_engine_flags(command, flags->engine);
  add_sampling_flags(command, flags->sampling);
}

}  // namespace eider
