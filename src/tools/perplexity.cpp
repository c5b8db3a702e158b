// `eider perplexity`: how well a model predicts a text, token by token, in one context (teacher forcing). It
// is how eider is compared with other engines (scripts/conformance.sh).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/perplexity.h"
#include "text/json_text.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "tools/loading.h"

namespace eider {
namespace {

/// Rows whose logits one step gives: 64 MiB of logits for a vocabulary of 262,144.
constexpr std::int64_t kRowsPerStep = 64;

struct PerplexityFlags {
  EngineFlags engine;
  std::optional<std::string> text_file;
  std::optional<std::string> ids_file;
  std::optional<std::int64_t> tokens;  ///< only the first so many
  bool json = false;
};

Result<std::vector<TokenId>> parse_ids(const std::string& text, std::int64_t vocab_size) {
  const nlohmann::ordered_json list = parse_ordered_json(text);
  if (!list.is_array()) return error("expected a JSON array of token ids");
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const nlohmann::ordered_json& item : list) {
    if (!item.is_number_integer() || item < 0 || item >= vocab_size)
      return error("item {} is no token id of this model (an integer from 0 to {})", ids.size(),
                   vocab_size - 1);
    ids.push_back(item.get<TokenId>());
  }
  return ids;
}

/// The tokens to predict: of a text with what the model adds at its start, or ids with nothing added.
Result<std::vector<TokenId>> read_tokens(const PerplexityFlags& flags, const Model& model) {
  const std::string& path = flags.ids_file ? *flags.ids_file : *flags.text_file;
  EIDER_TRY(const std::string text, read_file(path));
  std::vector<TokenId> ids;
  if (flags.ids_file) {
    EIDER_TRY(ids, parse_ids(text, model.vocab_size).context(path));
  } else {
    EIDER_TRY(const Tokenizer tokenizer, create_tokenizer(*model.checkpoint));
    ids = tokenizer.encode(text, {.add_special = true, .parse_special = false});
  }
  if (flags.tokens && *flags.tokens < static_cast<std::int64_t>(ids.size()))
    ids.resize(static_cast<std::size_t>(*flags.tokens));
  if (ids.size() < 2) return error("{}: has {} tokens, but a prediction needs at least 2", path, ids.size());
  return ids;
}

std::string to_json(const Perplexity& result, const std::vector<TokenId>& ids) {
  const nlohmann::ordered_json object = {{"perplexity", result.perplexity},
                                         {"tokens", ids.size()},
                                         {"ids", ids},
                                         {"nll", result.nll},
                                         {"argmax", result.argmax}};
  return to_json_text(object) + "\n";
}

Result<int> run_perplexity(const PerplexityFlags& flags, const Terminal& terminal) {
  const InterruptGuard interrupt;
  const Machine machine = detect_machine();
  EIDER_TRY(Model model, open_model(flags.engine.model));
  EIDER_TRY(const std::vector<TokenId> ids, read_tokens(flags, model));

  EIDER_TRY(const Compute compute, create_compute(flags.engine, machine, has_fp8_weights(model)));
  EngineFlags engine_flags = flags.engine;
  engine_flags.context = static_cast<std::int64_t>(ids.size());
  EIDER_TRY(EngineOptions options, settle_options(engine_flags, model, *compute.backend, machine, terminal));
  options.max_batch_tokens = std::min(options.max_batch_tokens, kRowsPerStep);
  options.max_logit_rows = options.max_batch_tokens;
  EIDER_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), *compute.backend, options,
                                                              flags.engine.cache, terminal, interrupt));
  ProgressBar bar(terminal, "scoring");
  EIDER_TRY(const Perplexity result,
            measure_perplexity(*engine, ids, [&](std::int64_t done, std::int64_t total) {
              bar.update(done, total);
              return !interrupt.interrupted();
            }));
  bar.erase();
  if (result.argmax.size() < ids.size())
    return error("interrupted after {} of {} tokens", result.argmax.size(), ids.size());
  EIDER_TRY_STATUS(write_stdout(
      flags.json ? to_json(result, ids)
                 : fmt::format("perplexity {:.4f} over {} tokens\n", result.perplexity, ids.size())));
  EIDER_TRY_STATUS(finish_cache(*engine, terminal, interrupt));
  return kExitSuccess;
}

constexpr const char* kPerplexityExamples = R"(Examples:
  eider perplexity -m model.gguf -f book.txt --tokens 512
  eider perplexity -m model.gguf --ids ids.json --json)";

}  // namespace

void add_perplexity_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<PerplexityFlags>();
  const auto choose = [flags, &action]() -> Status {
    if (flags->text_file.has_value() == flags->ids_file.has_value())
      return error("--file: exactly one of -f PATH and --ids PATH is needed");
    action = [flags](const Terminal& terminal) { return run_perplexity(*flags, terminal); };
    return {};
  };
  CLI::App& command = add_command(program, "perplexity", "Measures how well a model predicts a text",
                                  kPerplexityExamples, choose);
  add_model_flag(command, flags->engine);
  add_text_flag(command, "-f,--file", "PATH", flags->text_file,
                "Text to predict; the model's BOS is put in front where it has one");
  add_text_flag(command, "--ids", "PATH", flags->ids_file,
                "A JSON array of token ids instead; nothing is added, no tokenizer needed");
  add_integer_flag(
      command, "--tokens", [flags = flags.get()](std::int64_t n) { flags->tokens = n; }, 2, 1 << 24,
      "Only the first N tokens [all]");
  add_switch(command, "--json", flags->json,
             "Prints one JSON object: perplexity, tokens, ids, nll (in nats), argmax");
  add_engine_flags(command, flags->engine);
}

}  // namespace eider
