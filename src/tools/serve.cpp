// `eider serve`: wires Engine -> Scheduler -> the endpoints -> the HTTP server, and ends them in the opposite
// order.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "server/context.h"
#include "server/http_server.h"
#include "server/log.h"
#include "server/router.h"
#include "serving/scheduler.h"
#include "tools/chat_prompt.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "tools/loading.h"
#include "tools/memory.h"

namespace eider {
namespace {

constexpr const char* kServerGroup = "Server";

struct ServeFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  TemplateFlags chat_template;
  server::HttpServerOptions http;
  serving::SchedulerOptions scheduler;
  std::optional<std::string> alias, api_key_file, certificate_file, key_file, cors_origin;
  std::optional<std::int64_t> kv_memory;  ///< bytes
  std::int64_t drain_seconds = 30;
};

/// Keys of the file, one a line, and of EIDER_API_KEY.
Result<std::vector<std::string>> read_api_keys(const ServeFlags& flags) {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::vector<std::string> keys;
  std::string text;
  if (flags.api_key_file) {
    EIDER_TRY(text, read_file(*flags.api_key_file).context("--api-key-file"));
    if (text.find_first_not_of(kSpaces) == std::string::npos)
      return error("--api-key-file: {} has no key", *flags.api_key_file);
  }
  if (const char* key = std::getenv("EIDER_API_KEY"); key != nullptr) text += "\n" + std::string(key);
  for (std::size_t begin = 0; (begin = text.find_first_not_of(kSpaces, begin)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    keys.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return keys;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// "DIR:SIZE"
Status parse_kv_disk(const std::string& text, std::optional<serving::DiskBudget>& budget) {
  const std::size_t colon = text.rfind(':');
  std::optional<std::int64_t> bytes;
  if (colon != std::string::npos && colon > 0) EIDER_TRY_STATUS(parse_size(text.substr(colon + 1), bytes));
  if (!bytes) return error("a directory, a colon and a size, as in /var/cache/eider:20G");
  budget = serving::DiskBudget{text.substr(0, colon), *bytes};
  return {};
}

/// Memory for KV blocks: what --kv-memory says, else a full context for each stream, but no more than half of
/// what is free once the model is there. Always enough for one full context.
std::int64_t kv_limit(const ServeFlags& flags, const Model& model, const Backend& backend,
                      const EngineOptions& options, const Machine& machine) {
  const MemoryNeeds needs = memory_needs(model, backend, options);
  if (flags.kv_memory) return std::max(*flags.kv_memory, needs.kv);
  const std::int64_t left = machine.available_memory - needs.weights - needs.working;
  return std::max(needs.kv, std::min(needs.kv * flags.scheduler.max_streams, left / 2));
}

/// Everything between the engine and the network.
struct Serving {
  std::unique_ptr<serving::Scheduler> scheduler;
  server::Log log;
  server::Metrics metrics;
  server::ResponseStore responses;
  server::PromptMemory prompts;
  server::HttpCounters http_counters;
  server::Context context;
  std::optional<ChatPrompt> prompt;
  std::unique_ptr<server::HttpServer> http;
};

std::string model_name(const ServeFlags& flags) {
  if (flags.alias) return *flags.alias;
  const std::filesystem::path path(flags.engine.model);
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

Status fill_context(const ServeFlags& flags, const Engine& engine, const Tokenizer& tokenizer,
                    Serving& serving) {
  server::Context& context = serving.context;
  context.model_id = model_name(flags);
  context.version = EIDER_VERSION;
  context.created = server::unix_seconds();
  context.tokenizer = &tokenizer;
  context.max_context = engine.options().context;
  context.hidden_size = engine.model().hidden_size;
  context.json_tokens = server::make_json_tokens(tokenizer, engine.model().vocab_size);
  SamplingFlags sampling = flags.sampling;
  take_advice(engine.model().checkpoint->generation_config(), sampling);
  context.sampling = sampling.options;
  context.seed = sampling.seed;
  if (serving.prompt) {
    context.render = [&prompt = *serving.prompt](const server::Json& conversation,
                                                 const server::Json& variables) {
      return prompt.render(conversation, variables);
    };
    std::string source = tokenizer.vocabulary().chat_template;
    if (flags.chat_template.file) {
      EIDER_TRY(source, read_file(*flags.chat_template.file));
    }
    context.tool_format = server::tool_format_of(source);
  }
  serving::Scheduler* scheduler = serving.scheduler.get();
  context.scheduler.submit = [scheduler](serving::Request request, serving::EventSink sink) {
    return scheduler->submit(std::move(request), std::move(sink));
  };
  context.scheduler.cancel = [scheduler](serving::RequestId id) { scheduler->cancel(id); };
  context.scheduler.stats = [scheduler] { return scheduler->stats(); };
  context.http = &serving.http_counters;
  EIDER_TRY(const std::vector<std::string> keys, read_api_keys(flags));
  context.api_key_digests = server::digests_of(keys);
  context.log = [&serving](const server::RequestRecord& record) { serving.log.request(record); };
  context.metrics = &serving.metrics;
  context.responses = &serving.responses;
  context.prompts = &serving.prompts;
  return {};
}

server::HttpServerOptions http_options(const ServeFlags& flags) {
  server::HttpServerOptions options = flags.http;
  options.tls_certificate_file = flags.certificate_file.value_or("");
  options.tls_key_file = flags.key_file.value_or("");
  options.cors_origin = flags.cors_origin.value_or("");
  return options;
}

void wait_for_signal(const InterruptGuard& interrupt) {
  constexpr std::chrono::milliseconds kPause{50};
  while (!interrupt.interrupted()) std::this_thread::sleep_for(kPause);
}

/// Lets running answers end, for a while, and closes what is left.
void drain(const ServeFlags& flags, Serving& serving) {
  serving.log.note(fmt::format("shutting down: running answers have {} s to end; Ctrl-C ends them now",
                               flags.drain_seconds));
  constexpr std::chrono::seconds kToClose{5};
  serving.http->stop_accepting();
  serving.scheduler->drain(serving::Clock::now() + std::chrono::seconds(flags.drain_seconds));
  serving.http->wait_until_closed(std::chrono::steady_clock::now() + kToClose);
  serving.http.reset();
}

Result<int> serve(const ServeFlags& flags, const Terminal& terminal) {
  const InterruptGuard interrupt(InterruptGuard::Signals::kInterruptAndTerminate);
  const Machine machine = detect_machine();
  EIDER_TRY(Model model, open_model(flags.engine.model));
  EIDER_TRY(const Tokenizer tokenizer, create_tokenizer(*model.checkpoint));
  std::optional<ChatPrompt> prompt;
  if (flags.chat_template.file || !tokenizer.vocabulary().chat_template.empty()) {
    EIDER_TRY(prompt, ChatPrompt::create(flags.chat_template, tokenizer, flags.engine.model));
  } else {
    terminal.note("this model has no chat template: only endpoints without messages answer");
  }
  EIDER_TRY(const Compute compute, create_compute(flags.engine, machine, has_fp8_weights(model)));
  EIDER_TRY(EngineOptions options, settle_options(flags.engine, model, *compute.backend, machine, terminal));
  options.max_logit_rows = options.rows_beside = flags.scheduler.max_streams;
  options.kv_limit_bytes = kv_limit(flags, model, *compute.backend, options, machine);
  EIDER_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), *compute.backend, options,
                                                              flags.engine.cache, terminal, interrupt));
  if (interrupt.interrupted()) return kExitInterrupted;

  Serving serving;  // behind the engine, whose memory its sessions give back
  serving.prompt = std::move(prompt);
  serving::SchedulerOptions scheduler = flags.scheduler;
  scheduler.log = [&serving](const std::string& line) { serving.log.warning(line); };
  EIDER_TRY(serving.scheduler,
            serving::Scheduler::start(*engine, tokenizer, *compute.pool, std::move(scheduler)));
  EIDER_TRY_STATUS(fill_context(flags, *engine, tokenizer, serving));
  EIDER_TRY(serving.http,
            server::HttpServer::start(http_options(flags), server::make_service(serving.context),
                                      serving.http_counters));
  if (!is_loopback(flags.http.host) && serving.context.api_key_digests.empty())
    terminal.warning(
        fmt::format("--host {}: whoever reaches this machine may use it; --api-key-file asks for a key",
                    flags.http.host));
  terminal.note(fmt::format("listening on {}://{}:{} with {} streams of {} tokens and {} of KV memory",
                            flags.certificate_file ? "https" : "http", flags.http.host, serving.http->port(),
                            flags.scheduler.max_streams, options.context,
                            format_bytes(options.kv_limit_bytes)));
  wait_for_signal(interrupt);
  drain(flags, serving);
  EIDER_TRY_STATUS(finish_cache(*engine, terminal, interrupt));
  return kExitSuccess;
}

constexpr const char* kServeExamples = R"(Examples:
  eider serve -m model.gguf
  eider serve -m model.gguf -c 8192 -np 4 --kv-memory 4G --kv-disk ~/.cache/eider/kv:20G
  EIDER_API_KEY=secret eider serve -m model.gguf --host 0.0.0.0 --ssl-cert-file c.pem --ssl-key-file k.pem

  curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'

docs/SERVER.md lists the endpoints. SIGTERM or Ctrl-C lets running answers end, a
second one ends the program at once.)";

void add_server_flags(CLI::App& command, ServeFlags& flags) {
  const auto keep_host = [&flags](const std::string& text) -> Status {
    flags.http.host = text;
    return {};
  };
  add_value_flag(command, "--host", "ADDRESS", keep_host, "Where to listen [127.0.0.1: this machine alone]",
                 kServerGroup);
  add_integer_flag(
      command, "--port", [&flags](std::int64_t port) { flags.http.port = static_cast<std::uint16_t>(port); },
      0, 65535, "0: one that is free [8080]", kServerGroup);
  add_text_flag(command, "--api-key-file", "PATH", flags.api_key_file,
                "API keys, one a line; EIDER_API_KEY may hold one too [anyone may ask]", kServerGroup);
  add_text_flag(command, "--ssl-cert-file", "PATH", flags.certificate_file, "TLS certificate, PEM",
                kServerGroup);
  add_text_flag(command, "--ssl-key-file", "PATH", flags.key_file, "TLS private key, PEM", kServerGroup);
  add_text_flag(command, "--cors-origin", "ORIGIN", flags.cors_origin,
                "Lets pages of that origin ask; *: of any [none]", kServerGroup);
  add_text_flag(command, "-a,--alias", "NAME", flags.alias, "The model's name in the API [the file's name]",
                kServerGroup);
  add_integer_flag(
      command, "--drain-timeout", [&flags](std::int64_t seconds) { flags.drain_seconds = seconds; }, 0, 86400,
      "Seconds that running answers get at the end [30]", kServerGroup);
}

void add_scheduler_flags(CLI::App& command, ServeFlags& flags) {
  serving::SchedulerOptions& options = flags.scheduler;
  constexpr std::int64_t kMostStreams = 256, kMostQueue = 65536;
  add_integer_flag(
      command, "--parallel", [&options](std::int64_t n) { options.max_streams = n; }, 1, kMostStreams,
      fmt::format("(-np) Answers computed at a time [{}]", options.max_streams), kServerGroup);
  add_integer_flag(
      command, "--max-queue", [&options](std::int64_t n) { options.max_queue = n; }, 0, kMostQueue,
      fmt::format("Answers that may wait beyond those; then 429 [{}]", options.max_queue), kServerGroup);
  const auto parse_gap = [&options](const std::string& text) -> Status {
    char* end = nullptr;
    const double gap = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(gap > 1 && gap <= 1000))
      return error("a number above 1, up to 1000");
    options.prefill_gap = gap;
    return {};
  };
  add_value_flag(command, "--prefill-gap", "N", parse_gap,
                 "Most usual steps between two tokens of an answer while others' prompts are read [3]",
                 kServerGroup);
  add_value_flag(
      command, "--kv-memory", "SIZE",
      [&flags](const std::string& text) { return parse_size(text, flags.kv_memory); },
      "Memory for running and remembered conversations, as in 4G [what the streams need, at most half of "
      "what is free]",
      kServerGroup);
  add_value_flag(
      command, "--kv-disk", "DIR:SIZE",
      [&options](const std::string& text) { return parse_kv_disk(text, options.kv_disk); },
      "Keeps conversations there that memory has no room for, also over restarts [none]", kServerGroup);
}

}  // namespace

void add_serve_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<ServeFlags>();
  const auto choose = [flags, &action]() -> Status {
    action = [flags](const Terminal& terminal) { return serve(*flags, terminal); };
    return {};
  };
  CLI::App& command = add_command(program, "serve", "Answers the OpenAI and Anthropic APIs over HTTP",
                                  kServeExamples, choose);
  add_model_flag(command, flags->engine);
  add_server_flags(command, *flags);
  add_scheduler_flags(command, *flags);
  add_template_flags(command, flags->chat_template, kOptionsGroup);
  add_context_flag(command, flags->engine);
  add_engine_flags(command, flags->engine);
  add_sampling_flags(command, flags->sampling);
}

}  // namespace eider
