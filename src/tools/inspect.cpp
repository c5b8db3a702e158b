// `eider inspect`: what a model file is and what running it takes, without reading its weights.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "format/storage_format.h"
#include "runtime/prepared_model.h"
#include "text/json_text.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/loading.h"
#include "tools/memory.h"
#include "weights/checkpoint.h"
#include "weights/printable.h"

namespace eider {
namespace {

struct InspectFlags {
  EngineFlags engine;
  bool json = false;
};

/// Tensors of one storage format.
struct FormatTotal {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;
};

std::map<Format, FormatTotal> totals_by_format(const Checkpoint& checkpoint) {
  std::map<Format, FormatTotal> totals;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    FormatTotal& total = totals[tensor.format];
    ++total.tensors;
    total.parameters += tensor.shape.elements();
    total.bytes += tensor.bytes();
  }
  return totals;
}

/// The model's file in the weight cache.
struct Prepared {
  std::string path;
  std::int64_t bytes = 0;
  std::size_t finished = 0, sections = 0;
  MappedPages pages;
};

/// Nothing where there is none that a start would use.
std::optional<Prepared> find_prepared(const Model& model, const Backend& backend, const CacheFlags& flags) {
  const Result<WeightCache> cache = open_cache(flags);
  const std::optional<PreparedIndex> index = prepared_index(model, backend);
  if (flags.off || !cache.ok() || !index) return std::nullopt;
  const Result<PreparedFile> file = PreparedFile::open(cache->path_of(index->key()));
  if (!file.ok() || !file->index().fits(*index)) return std::nullopt;
  const Result<MappedPages> pages = resident_pages(*file);
  return Prepared{file->path(), file->index().data_bytes(), file->finished(), file->index().sections().size(),
                  pages.ok() ? *pages : MappedPages{}};
}

/// The ids that the checkpoint says end a turn, each once.
std::vector<TokenId> end_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  const auto add = [&ids](TokenId id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  for (const std::optional<TokenId> id : {vocabulary.eos, vocabulary.eot, vocabulary.eom})
    if (id) add(*id);
  std::ranges::for_each(vocabulary.more_eos, add);
  return ids;
}

/// What generation_config.json advises, under its own names; empty where it advises nothing.
nlohmann::ordered_json sampling_advice(const GenerationConfig& advice) {
  auto object = nlohmann::ordered_json::object();
  const auto put = [&object](const char* key, const auto& value) {
    if (value) object[key] = *value;
  };
  put("temperature", advice.temperature);
  put("top_k", advice.top_k);
  put("top_p", advice.top_p);
  put("min_p", advice.min_p);
  put("repetition_penalty", advice.repetition_penalty);
  return object;
}

/// Which pooling makes embeddings of a prompt's states, or why there are none.
std::string describe(const PoolingConfig& pooling) {
  if (!pooling.refusal.empty()) return "none: " + pooling.refusal;
  return fmt::format("{} (how the states of tokens are pooled)", pooling_name(pooling.pooling));
}

/// Everything that the command shows, in the order it is shown.
struct Inspection {
  const Model& model;
  const Machine& machine;
  std::map<Format, FormatTotal> formats;
  std::int64_t parameters = 0;
  std::int64_t bytes_per_token = 0;
  std::int64_t context = 0;
  std::int64_t barriers_per_token = 0;
  MemoryNeeds needs;
  std::optional<Prepared> prepared;
  std::optional<Fp8Choice> fp8;
};

Result<Inspection> inspect_model(const Model& model, const Machine& machine, const EngineFlags& flags) {
  Inspection inspection{.model = model, .machine = machine, .formats = totals_by_format(*model.checkpoint)};
  for (const auto& [format, total] : inspection.formats) inspection.parameters += total.parameters;
  inspection.bytes_per_token = bytes_per_token(model.plan);
  EngineOptions options;
  options.context = inspection.context = flags.context.value_or(model.max_position_embeddings);
  options.max_batch_tokens = std::min(flags.max_batch_tokens, options.context);
  options.kv_type = flags.kv_type;
  EIDER_TRY(Compute compute, create_compute(flags, machine, has_fp8_weights(model)));
  inspection.needs = memory_needs(model, *compute.backend, options);
  EIDER_TRY(inspection.barriers_per_token,
            compute.backend->barriers_per_token(
                model.plan, {.kv_type = options.kv_type, .max_positions = options.context}));
  inspection.prepared = find_prepared(model, *compute.backend, flags.cache);
  inspection.fp8 = std::move(compute.fp8);
  return inspection;
}

std::vector<std::int64_t> dims(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

std::string to_json(const Inspection& inspection) {
  const Model& model = inspection.model;
  const Machine& machine = inspection.machine;
  auto formats = nlohmann::ordered_json::array();
  for (const auto& [format, total] : inspection.formats)
    formats.push_back({{"format", format_name(format)},
                       {"tensors", total.tensors},
                       {"parameters", total.parameters},
                       {"bytes", total.bytes}});
  auto data_tensors = nlohmann::ordered_json::array();
  for (const auto& [name, tensor] : model.checkpoint->data_tensors())
    data_tensors.push_back({{"name", name},
                            {"type", tensor.dtype},
                            {"shape", dims(tensor.shape)},
                            {"bytes", tensor.bytes.size()}});
  nlohmann::ordered_json tokenizer;  // null where the checkpoint has none
  if (const auto& vocabulary = model.checkpoint->vocabulary())
    tokenizer = {{"model", vocabulary->model},
                 {"pre_tokenizer", vocabulary->pre_tokenizer},
                 {"tokens", vocabulary->tokens.size()},
                 {"end_tokens", end_tokens(*vocabulary)},
                 {"chat_template", !vocabulary->chat_template.empty()}};
  nlohmann::ordered_json prepared;  // null where there are none
  if (const auto& file = inspection.prepared)
    prepared = {{"path", file->path},
                {"bytes", file->bytes},
                {"finished", file->finished},
                {"sections", file->sections},
                {"resident_bytes", file->pages.resident},
                {"huge_bytes", file->pages.huge}};
  nlohmann::ordered_json pooling;  // null where there are no embeddings
  if (model.pooling.refusal.empty()) pooling = pooling_name(model.pooling.pooling);
  nlohmann::ordered_json fp8_as;  // null where there is nothing to choose
  if (inspection.fp8) fp8_as = fp8_form_name(inspection.fp8->form);
  const nlohmann::ordered_json object = {{"path", model.checkpoint->path()},
                                         {"source", model.checkpoint->source()},
                                         {"architecture", model.architecture},
                                         {"parameters", inspection.parameters},
                                         {"bytes_per_token", inspection.bytes_per_token},
                                         {"barriers_per_token", inspection.barriers_per_token},
                                         {"hidden_size", model.hidden_size},
                                         {"num_hidden_layers", model.num_hidden_layers},
                                         {"vocab_size", model.vocab_size},
                                         {"max_position_embeddings", model.max_position_embeddings},
                                         {"formats", std::move(formats)},
                                         {"data_tensors", std::move(data_tensors)},
                                         {"tokenizer", std::move(tokenizer)},
                                         {"sampling", sampling_advice(model.checkpoint->generation_config())},
                                         {"pooling", std::move(pooling)},
                                         {"memory",
                                          {{"context", inspection.context},
                                           {"weights", inspection.needs.weights},
                                           {"kv_cache", inspection.needs.kv},
                                           {"working", inspection.needs.working},
                                           {"total", inspection.needs.total()}}},
                                         {"fp8_as", std::move(fp8_as)},
                                         {"prepared", std::move(prepared)},
                                         {"machine",
                                          {{"threads", machine.default_threads()},
                                           {"available_memory", machine.available_memory},
                                           {"total_memory", machine.total_memory}}}};
  return to_json_text(object, 2) + "\n";
}

/// "135M", "30.5B"
std::string format_count(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.1f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.0f}M", value / 1e6);
  return fmt::format("{:.0f}K", value / 1e3);
}

/// "\"<|im_end|>\" (151645), ...", each with its id
std::string describe_end_tokens(const Vocabulary& vocabulary) {
  std::string text;
  for (const TokenId id : end_tokens(vocabulary))
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ",
                        printable(vocabulary.tokens[static_cast<std::size_t>(id)]), id);
  return text.empty() ? "nothing that the checkpoint names" : text;
}

/// "temperature 0.6, top_k 20, top_p 0.95"
std::string describe_advice(const GenerationConfig& advice) {
  std::string text;
  const nlohmann::ordered_json advised = sampling_advice(advice);
  for (const auto& [key, value] : advised.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, to_json_text(value));
  return text;
}

/// "4.1 GiB, 37 of 37 parts finished; 4.1 GiB in memory, 100 % of that in huge pages"
std::string describe(const Prepared& prepared) {
  const double share = prepared.pages.resident == 0 ? 0
                                                    : 100 * static_cast<double>(prepared.pages.huge) /
                                                          static_cast<double>(prepared.pages.resident);
  return fmt::format("{}, {} of {} parts finished; {} in memory, {:.0f} % of that in huge pages",
                     format_bytes(prepared.bytes), prepared.finished, prepared.sections,
                     format_bytes(prepared.pages.resident), share);
}

/// A row for each tensor that is no weight; nothing where there is none.
std::string data_table(const std::map<std::string, DataTensor, std::less<>>& tensors) {
  if (tensors.empty()) return "";
  std::string text = fmt::format("\n{:<10}{:>12}  {:<20}{}\n", "data", "bytes", "shape", "tensor");
  for (const auto& [name, tensor] : tensors)
    text += fmt::format("{:<10}{:>12}  {:<20}{}\n", tensor.dtype,
                        format_bytes(static_cast<std::int64_t>(tensor.bytes.size())), tensor.shape.text(),
                        printable(name));
  return text;
}

std::string to_text(const Inspection& inspection) {
  const Model& model = inspection.model;
  std::string text;
  const auto row = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<18}{}\n", label, value);
  };
  row("file", fmt::format("{} ({})", model.checkpoint->path(), model.checkpoint->source()));
  row("architecture", fmt::format("{}, {} layers, hidden size {}, vocabulary {}", model.architecture,
                                  model.num_hidden_layers, model.hidden_size, model.vocab_size));
  const auto row_of_two = [&](std::string_view label, const char* first, const char* second,
                              std::string_view what) {
    const auto all = model.checkpoint->config().integer(first);
    const auto some = model.checkpoint->config().integer(second);
    if (all.ok() && some.ok()) row(label, fmt::format("{}, {} {}", *all, *some, what));
  };
  row_of_two("heads", "num_attention_heads", "num_key_value_heads", "for keys and values");
  row_of_two("experts", "num_experts", "num_experts_per_tok", "a token");
  row("parameters", fmt::format("{} ({})", inspection.parameters, format_count(inspection.parameters)));
  row("bytes per token",
      fmt::format("{} (weights that one decoded token reads)", format_bytes(inspection.bytes_per_token)));
  row("barriers a token",
      fmt::format("{} (where threads wait for one another, in decoding)", inspection.barriers_per_token));
  row("context", fmt::format("{} tokens, the model's own", model.max_position_embeddings));
  if (const auto& vocabulary = model.checkpoint->vocabulary()) {
    const std::string pre =
        vocabulary->pre_tokenizer.empty() ? "" : ", pre-tokenizer " + vocabulary->pre_tokenizer;
    row("tokenizer", fmt::format("{}{}, {} tokens", vocabulary->model, pre, vocabulary->tokens.size()));
    row("chat template", vocabulary->chat_template.empty() ? "none" : "yes");
    row("end of a turn", describe_end_tokens(*vocabulary));
  } else {
    row("tokenizer", "none that eider reads");
  }
  if (const std::string advice = describe_advice(model.checkpoint->generation_config()); !advice.empty())
    row("sampling", advice + " (its makers' advice, the default of run and chat)");
  row("embeddings", describe(model.pooling));

  text += fmt::format("\n{:<10}{:>9}{:>16}{:>12}\n", "format", "tensors", "parameters", "bytes");
  for (const auto& [format, total] : inspection.formats)
    text += fmt::format("{:<10}{:>9}{:>16}{:>12}\n", format_name(format), total.tensors, total.parameters,
                        format_bytes(total.bytes));
  text += data_table(model.checkpoint->data_tensors());

  text += "\n";
  row("memory", fmt::format("a context of {} {}", inspection.context, describe(inspection.needs)));
  if (inspection.fp8)
    row("fp8 executed as", fmt::format("{} ({})", fp8_form_name(inspection.fp8->form), inspection.fp8->why));
  row("prepared weights", inspection.prepared ? describe(*inspection.prepared) : "none yet");
  row("this machine",
      fmt::format("{} of {} free, {} threads by default", format_bytes(inspection.machine.available_memory),
                  format_bytes(inspection.machine.total_memory), inspection.machine.default_threads()));
  return text;
}

Result<int> inspect(const InspectFlags& flags) {
  const Machine machine = detect_machine();
  EIDER_TRY(const Model model, open_model(flags.engine.model));
  EIDER_TRY(const Inspection inspection, inspect_model(model, machine, flags.engine));
  EIDER_TRY_STATUS(write_stdout(flags.json ? to_json(inspection) : to_text(inspection)));
  return kExitSuccess;
}

constexpr const char* kInspectExamples = R"(Examples:
  eider inspect -m model.gguf
  eider inspect -m model.gguf -c 32768      the memory that this context needs)";

}  // namespace

void add_inspect_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<InspectFlags>();
  const auto choose = [flags, &action]() -> Status {
    action = [flags](const Terminal&) { return inspect(*flags); };
    return {};
  };
  CLI::App& command =
      add_command(program, "inspect", "Shows what a model file is and the memory that it needs",
                  kInspectExamples, choose);
  add_model_flag(command, flags->engine);
  add_context_flag(command, flags->engine);
  add_engine_flags(command, flags->engine);
  add_switch(command, "--json", flags->json, "Prints one JSON object; sizes are bytes");
}

}  // namespace eider
