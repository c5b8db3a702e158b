// Nobody's bytes depend on who else is there, on what is remembered, or on where: whole models through the
// scheduler give what each request gives alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "serving/scheduler.h"
#include "tests/serving/listener.h"
#include "tests/support/exactness.h"
#include "tests/support/loaded_engine.h"
#include "tests/support/random_model.h"

namespace eider::serving {
namespace {

using eider::test::byte_tokenizer;
using eider::test::compute_alone;
using eider::test::HeardChoice;
using eider::test::Listener;
using eider::test::submit;
using test::make_prompt;

class ServingExactness : public ::testing::TestWithParam<const char*> {
 protected:
  ServingExactness() {
    if (GetParam() == std::string("qwen3")) {
      model_ = directory_.file("model.gguf");
      test::RandomModel(Format::kQ8_0, false).write(model_);
    } else {
      model_ = test::golden_folder(GetParam());
    }
    alone_ = load(0);
  }

  test::LoadedEngine load(std::int64_t kv_limit_bytes) {
    EngineOptions options;
    options.context = 2048;
    options.max_batch_tokens = 128;
    options.max_logit_rows = options.rows_beside = 16;
    options.kv_limit_bytes = kv_limit_bytes;
    return test::load_engine(model_, 2, options, cpu_isas(detect_machine()).front());
  }

  void start(SchedulerOptions options = {}, std::int64_t kv_limit_bytes = 0) {
    scheduler_.reset();
    loaded_ = load(kv_limit_bytes);
    options.log = [this](const std::string& line) { log_.push_back(line); };
    auto scheduler = Scheduler::start(*loaded_.engine, tokenizer_, *loaded_.pool, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.error().message();
    scheduler_ = std::move(*scheduler);
  }

  // Bytes of a session of so many tokens of the full layers.
  std::int64_t bytes_of(std::int64_t tokens) const {
    const KvPool& kv = alone_.engine->kv_pool();
    std::int64_t bytes = 0;
    for (int kind = 0; kind < static_cast<int>(kv.kinds().size()); ++kind)
      bytes += blocks_for(tokens) * kv.block_bytes(kind);
    return bytes;
  }

  bool has_windows() const {
    return std::ranges::any_of(alone_.engine->kv_pool().kinds(),
                               [](const KvKind& k) { return k.window > 0; });
  }

  static Request request(std::vector<TokenId> prompt, std::int64_t max_tokens, std::uint64_t seed) {
    Request request;
    request.prompt = std::move(prompt);
    request.limits.max_tokens = max_tokens;
    request.sampling.seed = seed;
    request.sampling.temperature = seed % 4 == 0 ? 0.0f : 0.5f + 0.3f * static_cast<float>(seed % 4);
    if (seed % 3 == 0) request.sampling.repeat_penalty = 1.2f;
    if (seed % 5 == 0) request.limits.stop = {"e", "\x03"};
    return request;
  }

  // The whole of a request: computed, and compared with what it gives alone.
  Listener compute(const Request& request) {
    const Listener listener = submit(*scheduler_, request);
    listener.wait();
    for (std::int64_t choice = 0; choice < request.choices; ++choice)
      expect_same(listener.choice(choice), compute_alone(*alone_.engine, tokenizer_, request, choice),
                  "choice " + std::to_string(choice));
    return listener;
  }

  // The conversation goes on: what was said, the answer, and more.
  static std::vector<TokenId> next_turn(const Request& request, const HeardChoice& answer,
                                        std::int64_t more) {
    std::vector<TokenId> prompt = request.prompt;
    prompt.insert(prompt.end(), answer.ids.begin(), answer.ids.end());
    const std::vector<TokenId> said = make_prompt(more, 77);
    prompt.insert(prompt.end(), said.begin(), said.end());
    return prompt;
  }

  test::TempDir directory_;
  std::string model_;
  const Tokenizer tokenizer_ = byte_tokenizer();
  test::LoadedEngine alone_, loaded_;
  std::vector<std::string> log_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_P(ServingExactness, ManyStreamsGiveWhatEachGivesAlone) {
  start({.max_streams = 8});
  std::vector<Request> requests;
  std::vector<Listener> listeners;
  for (std::uint64_t i = 0; i < 32; ++i) {
    const auto length = static_cast<std::int64_t>(1 + i * i * 37 % 400);
    requests.push_back(request(make_prompt(length, static_cast<std::uint32_t>(i % 20)),
                               5 + static_cast<std::int64_t>(i), i));
    listeners.push_back(submit(*scheduler_, requests.back()));
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    listeners[i].wait();
    expect_same(listeners[i].choice(), compute_alone(*alone_.engine, tokenizer_, requests[i]),
                "stream " + std::to_string(i));
  }
}

TEST_P(ServingExactness, ATurnComputesOnlyWhatIsNew) {
  start();
  const Request first = request(make_prompt(300, 1), 40, 1);
  const Listener answer = compute(first);
  EXPECT_EQ(answer.started().cached_tokens, 0);
  const Request second = request(next_turn(first, answer.choice(), 30), 10, 2);
  // The last sampled token was never computed.
  EXPECT_EQ(compute(second).started().cached_tokens, 300 + std::ssize(answer.choice().ids) - 1);
  EXPECT_EQ(scheduler_->stats().sessions_in_memory, 1);

  // The same again: all but the last token, from whose logits the answer starts.
  EXPECT_EQ(compute(second).started().cached_tokens, std::ssize(second.prompt) - 1);
  // An answer that goes another way, from the end of the first prompt.
  EXPECT_EQ(compute(request(first.prompt, 20, 3)).started().cached_tokens, 299);
}

TEST_P(ServingExactness, APromptPartsInTheMiddle) {
  start();
  const Request first = request(make_prompt(600, 1), 8, 1);
  compute(first);
  std::vector<TokenId> other = first.prompt;
  const std::vector<TokenId> rest = make_prompt(267, 5);
  std::copy(rest.begin(), rest.end(), other.begin() + 333);
  const std::int64_t common = std::ranges::mismatch(other, first.prompt).in1 - other.begin();
  const Listener parted = compute(request(other, 20, 2));
  // Windows have forgotten what the middle sees.
  EXPECT_EQ(parted.started().cached_tokens, has_windows() ? 0 : common);
  compute(request(next_turn(first, {}, 5), 20, 3));  // the first one is still as it was
}

TEST_P(ServingExactness, ScopesShareNothing) {
  start();
  Request mine = request(make_prompt(200, 1), 8, 1);
  mine.scope = "one";
  compute(mine);
  Request theirs = mine;
  theirs.scope = "two";
  EXPECT_EQ(compute(theirs).started().cached_tokens, 0);
  EXPECT_EQ(compute(mine).started().cached_tokens, 199);
}

TEST_P(ServingExactness, ChoicesForkFromOnePrompt) {
  start();
  Request four = request(make_prompt(300, 1), 30, 1);
  four.choices = 4;
  four.sampling.temperature = 1.5f;
  const Listener listener = compute(four);
  EXPECT_NE(listener.choice(0).ids, listener.choice(1).ids);
  EXPECT_NE(listener.choice(2).ids, listener.choice(3).ids);
  EXPECT_EQ(listener.choice(3).finished.prompt_tokens, 300);
  // Each may be gone on from.
  const Request next = request(next_turn(four, listener.choice(2), 10), 5, 2);
  EXPECT_EQ(compute(next).started().cached_tokens, 300 + std::ssize(listener.choice(2).ids) - 1);
}

TEST_P(ServingExactness, ARunningAnswersPromptIsShared) {
  start();
  const Request first = request(make_prompt(300, 1), 300, 1);
  const Listener running = submit(*scheduler_, first);
  running.wait_for_tokens(1);
  EXPECT_EQ(compute(request(first.prompt, 10, 2)).started().cached_tokens, 299);
  running.wait();
  expect_same(running.choice(), compute_alone(*alone_.engine, tokenizer_, first), "the running one");
}

TEST_P(ServingExactness, SessionsGoToDiskAndComeBack) {
  const std::string disk = directory_.file("sessions");
  SchedulerOptions options;
  options.kv_disk = DiskBudget{disk, std::int64_t{1} << 30};
  start(options, bytes_of(has_windows() ? 768 : 2 * 768));
  std::vector<Request> firsts;
  std::vector<Listener> answers;
  for (std::uint64_t i = 0; i < 5; ++i) {
    firsts.push_back(request(make_prompt(500, static_cast<std::uint32_t>(i)), 20, i));
    answers.push_back(compute(firsts.back()));
  }
  EXPECT_GE(scheduler_->stats().saved_sessions, 2);
  for (std::size_t i = 0; i < 5; ++i) {
    const Request next = request(next_turn(firsts[i], answers[i].choice(), 20), 10, i);
    EXPECT_EQ(compute(next).started().cached_tokens, 500 + std::ssize(answers[i].choice().ids) - 1) << i;
  }
  EXPECT_GE(scheduler_->stats().loaded_sessions, 2);
  EXPECT_EQ(log_, std::vector<std::string>());

  // All are there after a restart, and gone where the budget has no room for them.
  start(options);
  EXPECT_GE(scheduler_->stats().sessions_on_disk, 5);
  const Request next = request(next_turn(firsts[1], answers[1].choice(), 40), 10, 1);
  const Listener after = compute(next);
  EXPECT_GE(after.started().cached_tokens, 500);
  scheduler_.reset();
  options.kv_disk->bytes = bytes_of(700) * 2;
  start(options);
  EXPECT_LE(scheduler_->stats().disk_bytes, options.kv_disk->bytes);
  EXPECT_GE(scheduler_->stats().sessions_on_disk, 1);
  scheduler_.reset();
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(disk)) bytes += file.file_size();
  EXPECT_LE(bytes, static_cast<std::uintmax_t>(options.kv_disk->bytes));
}

TEST_P(ServingExactness, DamagedFilesAreRemovedWithALine) {
  const std::string disk = directory_.file("sessions");
  SchedulerOptions options;
  options.kv_disk = DiskBudget{disk, std::int64_t{1} << 30};
  const auto files = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(disk))
      if (file.path().extension() == ".eiderkv") found.push_back(file.path());
    return found;
  };
  const Request first = request(make_prompt(500, 1), 20, 1);
  // In the header: noticed at the start. In a block: when it is read.
  for (const bool in_header : {true, false}) {
    start(options);
    compute(first);
    scheduler_.reset();
    ASSERT_EQ(files().size(), 1u);
    const std::streamoff at = in_header ? 20 : 5000;
    std::fstream file(files()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
    file.close();
    log_.clear();
    start(options);
    EXPECT_EQ(log_.size(), in_header ? 1u : 0u);
    EXPECT_EQ(compute(first).started().cached_tokens, 0);
    EXPECT_EQ(log_.size(), 1u);
    EXPECT_EQ(scheduler_->stats().damaged_files, 1);
    EXPECT_EQ(files().size(), 0u);
    scheduler_.reset();
    for (const auto& left : files()) std::filesystem::remove(left);
  }
}

TEST_P(ServingExactness, OtherFilesOfTheDirectoryStay) {
  const std::string disk = directory_.file("sessions");
  std::filesystem::create_directories(disk);
  test::write_file(disk + "/notes.txt", "mine");
  const std::string partial = disk + "/0123456789abcdef-0123456789abcdef0123456789abcdef.eiderkv.partial-1";
  const std::string of_another_model = disk + "/0123456789abcdef-0123456789abcdef0123456789abcdef.eiderkv";
  test::write_file(partial, "begun");
  test::write_file(of_another_model, "theirs");
  SchedulerOptions options;
  options.kv_disk = DiskBudget{disk, 1000};
  start(options);
  auto second = Scheduler::start(*loaded_.engine, tokenizer_, *loaded_.pool, options);
  EXPECT_FALSE(second.ok());  // one process at a time
  compute(request(make_prompt(100, 1), 5, 1));
  scheduler_.reset();  // whose session is too large for the budget
  EXPECT_TRUE(std::filesystem::exists(disk + "/notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(of_another_model));
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_P(ServingExactness, EmbeddingsAreTheFinalNormOfTheLastToken) {
  start();
  const std::vector<TokenId> prompt = make_prompt(300, 1);
  std::vector<float> expected;
  Session session = alone_.engine->new_session();
  for (std::size_t i = 0; i < prompt.size(); i += 100) {
    const Chunk chunk{&session, std::span(prompt).subspan(i, 100), LogitsWanted::kLast};
    const auto keep = [&](const Op&, ValueId id, const void* data, std::int64_t rows) {
      const Value& value = alone_.engine->model().plan.value(id);
      ASSERT_TRUE(value.name != "final_norm" || rows == 1);
      const auto* values = static_cast<const float*>(data);
      if (value.name == "final_norm") expected.assign(values, values + value.width);
    };
    const Observer observer(keep);
    ASSERT_TRUE(alone_.engine->forward({&chunk, 1}, &observer).ok());
  }
  Request wanted = request(prompt, 0, 1);
  wanted.embedding = true;
  for (const std::int64_t cached : {0, 299}) {
    const Listener other = submit(*scheduler_, request(make_prompt(100, 3), 50, 3));
    const Listener listener = submit(*scheduler_, wanted);
    listener.wait();
    EXPECT_EQ(listener.embedded().state, expected);
    EXPECT_EQ(listener.embedded().cached_tokens, cached);
    other.wait();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ServingExactness, ::testing::Values("qwen3", "gemma3"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace eider::serving
