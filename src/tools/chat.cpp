// `eider chat`: reads a message, streams its answer, and again. It wires what `eider run` wires to a
// Dialogue, and the keyboard to both.
#include <memory>
#include <optional>
#include <string>

#include "runtime/generation.h"
#include "runtime/sampler.h"
#include "tools/chat_commands.h"
#include "tools/chat_dialogue.h"
#include "tools/chat_input.h"
#include "tools/chat_output.h"
#include "tools/chat_prompt.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/generating.h"
#include "tools/loading.h"
#include "tools/memory.h"

namespace eider {
namespace {

struct ChatFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  GenerationLimits limits;
  std::optional<std::string> system;
  TemplateFlags chat_template;
  bool verbose = false;
};

/// Says what a person can do where an answer ended for want of room, or tells why it ended early.
void report_end(const Turn& turn, const Chat& chat, const Terminal& terminal) {
  if (turn.context_full && turn.generated == 0)
    terminal.warning(
        fmt::format("the context is full: this prompt has {} tokens, {} fit. It was not answered.",
                    turn.prompt_tokens, chat.dialogue.max_context()));
  else if (turn.context_full)
    terminal.warning(
        fmt::format("the context of {} tokens is full: the answer was cut.", chat.dialogue.max_context()));
  if (turn.context_full) {
    terminal.note(
        "  /drop   forgets the oldest turn and goes on\n"
        "  /edit   changes the last message (shorter)\n"
        "  /reset  begins a new conversation\n"
        "  /save   keeps this one, to go on with a larger -c");
  } else if (turn.finish_reason == FinishReason::kCancelled) {
    terminal.note(turn.generated > 0 ? "(stopped; Ctrl-C again leaves)"
                                     : "(stopped before the answer began; /regen asks again, Ctrl-C leaves)");
  } else if (turn.finish_reason == FinishReason::kLength) {
    terminal.note(fmt::format("(cut after {} tokens, as -n says)", turn.generated));
  } else if (turn.generated == 1) {
    terminal.note("(the model had nothing to say)");
  }
}

/// Reads, answers and obeys until someone leaves.
class ChatLoop {
 public:
  ChatLoop(Chat chat, Engine& engine, ChatInput& input, const Terminal& terminal, bool verbose)
      : chat_(std::move(chat)), engine_(&engine), input_(&input), terminal_(&terminal), verbose_(verbose) {}

  /// Returns the exit code. Fails only where stdout does.
  Result<int> run();

 private:
  Result<ChatStep> take(std::string line);
  Status answer(const InterruptGuard& interrupt);
  void fail(const Error& failure);
  bool interrupted_again();

  Chat chat_;
  Engine* engine_;
  ChatInput* input_;
  const Terminal* terminal_;
  bool verbose_;
  bool failed_ = false;       // something was refused
  bool interrupted_ = false;  // the last thing that happened was a Ctrl-C
};

void ChatLoop::fail(const Error& failure) {
  failed_ = true;
  terminal_->error(failure.message());
}

Result<int> ChatLoop::run() {
  for (;;) {
    Result<ChatInput::Input> input = input_->read(chat_.draft);
    const InterruptGuard interrupt;
    ChatStep step = ChatStep::kRead;
    if (!input.ok()) {
      fail(input.error());
    } else if (input->event == ChatInput::Event::kEnd) {
      step = ChatStep::kLeave;
    } else if (input->event == ChatInput::Event::kInterrupt) {
      if (interrupted_again()) return kExitInterrupted;
    } else {
      interrupted_ = false;
      Result<ChatStep> taken = take(std::move(input->text));
      if (!taken.ok()) fail(taken.error());
      step = taken.ok() ? *taken : ChatStep::kRead;
    }
    if (step == ChatStep::kAnswer) EIDER_TRY_STATUS(answer(interrupt));
    if (step == ChatStep::kLeave) return failed_ && !chat_.interactive ? kExitFailure : kExitSuccess;
  }
}

/// At an empty prompt a first Ctrl-C may have been meant for an answer that just ended.
bool ChatLoop::interrupted_again() {
  if (!std::exchange(chat_.draft, {}).empty()) {
    terminal_->note("(the last message stays as it was)");
    return false;
  }
  if (interrupted_) return true;
  interrupted_ = true;
  terminal_->note("(Ctrl-C again leaves)");
  return false;
}

Result<ChatStep> ChatLoop::take(std::string line) {
  const bool edited = !std::exchange(chat_.draft, {}).empty();
  if (line.find_first_not_of(" \t\n") == std::string::npos) return ChatStep::kRead;
  if (is_chat_command(line)) return run_chat_command(line, chat_, *terminal_);
  if (edited) chat_.dialogue.forget_answer();
  chat_.dialogue.ask(std::move(line));
  return ChatStep::kAnswer;
}

/// Fails only where stdout does; what else stands in the way of an answer is reported, and the chat goes on.
Status ChatLoop::answer(const InterruptGuard& interrupt) {
  SamplerOptions sampling = chat_.sampling.options;
  sampling.seed = *chat_.sampling.seed;
  Result<Sampler> sampler = Sampler::create(sampling, engine_->model().vocab_size);
  Result<std::string> prompt = chat_.dialogue.render();
  if (!sampler.ok() || !prompt.ok()) {
    fail(sampler.ok() ? prompt.error() : sampler.error());
    return {};
  }
  AnswerPrinter printer(thought_opened_by(*prompt));
  Status printed;
  const auto print = [&](const std::string& text) { return printed = printer.print(text); };
  const auto run = [&](Generation& generation) { return generate(generation, print, *terminal_, interrupt); };
  const Result<Turn> turn = chat_.dialogue.answer(std::move(*sampler), chat_.limits, run);
  EIDER_TRY_STATUS(printed);
  EIDER_TRY_STATUS(printer.finish());
  if (!turn.ok()) {
    fail(turn.error());
    return {};
  }
  chat_.last_turn = *turn;
  interrupted_ = turn->finish_reason == FinishReason::kCancelled;
  failed_ = failed_ || turn->context_full;
  report_end(*turn, chat_, *terminal_);
  if (verbose_) terminal_->note(describe(*turn, chat_.dialogue.max_context()));
  return {};
}

Result<int> chat(const ChatFlags& flags, const Terminal& terminal) {
  std::optional<InterruptGuard> interrupt(std::in_place);
  const Machine machine = detect_machine();
  EIDER_TRY(Model model, open_model(flags.engine.model));
  EIDER_TRY(const Tokenizer tokenizer, create_tokenizer(*model.checkpoint));
  EIDER_TRY(ChatPrompt prompt, ChatPrompt::create(flags.chat_template, tokenizer, flags.engine.model));
  EIDER_TRY(const Compute compute, create_compute(flags.engine, machine, has_fp8_weights(model)));
  EIDER_TRY(const EngineOptions options,
            settle_options(flags.engine, model, *compute.backend, machine, terminal));
  if (flags.verbose)
    terminal.note(fmt::format("{} threads; a context of {} {}", compute.pool->size(), options.context,
                              describe(memory_needs(model, *compute.backend, options))));
  EIDER_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), *compute.backend, options,
                                                              flags.engine.cache, terminal, *interrupt));
  if (interrupt->interrupted()) return kExitInterrupted;
  interrupt.reset();  // from here on there is one for each answer

  SamplingFlags sampling = flags.sampling;
  take_advice(engine->model().checkpoint->generation_config(), sampling);
  ChatInput input(default_history_path(), terminal);
  Chat state{Dialogue(*engine, tokenizer, std::move(prompt)),
             std::move(sampling),
             flags.limits,
             input.interactive(),
             {},
             {}};
  state.dialogue.set_system(flags.system);
  if (!flags.sampling.seed) {
    state.sampling.seed = draw_seed();
    terminal.note(fmt::format("seed: {}", *state.sampling.seed));
  }
  if (input.interactive()) terminal.note("/help lists the commands and keys, Ctrl-D leaves");
  const Result<int> code = ChatLoop(std::move(state), *engine, input, terminal, flags.verbose).run();
  const InterruptGuard at_end;
  if (code.ok()) EIDER_TRY_STATUS(finish_cache(*engine, terminal, at_end));
  return code;
}

constexpr const char* kChatExamples = R"(Examples:
  eider chat -m model.gguf
  eider chat -m model.gguf --system "Answer in French" -c 8192
  eider chat -m model.gguf --template-args '{"enable_thinking": false}'
  printf 'Hello\nAnd in Spanish?\n' | eider chat -m model.gguf      line by line

/help in the chat lists its commands and keys. Ctrl-C stops an answer, a second
one leaves. What was typed is remembered in $XDG_STATE_HOME/eider/chat_history
(~/.local/state/eider/chat_history).)";

}  // namespace

void add_chat_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<ChatFlags>();
  const auto choose = [flags, &action]() -> Status {
    action = [flags](const Terminal& terminal) { return chat(*flags, terminal); };
    return {};
  };
  CLI::App& command = add_command(
      program, "chat", "Answers messages by turns, from a terminal or line by line", kChatExamples, choose);
  add_model_flag(command, flags->engine);
  add_text_flag(command, "--system", "TEXT", flags->system, "System message");
  add_template_flags(command, flags->chat_template, kOptionsGroup);
  add_predict_flag(command, flags->limits.max_tokens);
  add_switch(command, "--verbose", flags->verbose, "Shows memory, threads, and what each answer took");
  add_context_flag(command, flags->engine);
  add_engine_flags(command, flags->engine);
  add_sampling_flags(command, flags->sampling);
}

}  // namespace eider
