// What the tests of the scheduler share: ears for events, and the same request computed alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serving/scheduler.h"
#include "tests/text/small_vocabulary.h"

namespace eider::test {

/// Bytes, and an end of turn: enough for models whose text is noise.
inline Tokenizer byte_tokenizer() {
  Vocabulary vocabulary = byte_level_vocabulary({});
  vocabulary.eos = add_token(vocabulary, "<eos>", TokenType::kControl);
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok());
  return std::move(*tokenizer);
}

/// What came of one choice.
struct HeardChoice {
  std::vector<TokenId> ids;
  std::string text;
  serving::Finished finished;
  bool is_finished = false;
};

/// Hears the events of one request. Copies hear the same.
class Listener {
 public:
  explicit Listener(std::int64_t choices = 1) : state_(std::make_shared<State>()) {
    state_->open_choices = choices;
  }

  serving::EventSink sink() const {
    return [state = state_](serving::Event event) {
      const std::lock_guard lock(state->mutex);
      EXPECT_FALSE(state->ended) << "an event after the last one";
      std::visit([&](auto& e) { state->hear(std::move(e)); }, event);
      state->changed.notify_all();
    };
  }

  /// Waits for the last event.
  void wait() const {
    std::unique_lock lock(state_->mutex);
    ASSERT_TRUE(state_->changed.wait_for(lock, std::chrono::seconds(120), [&] { return state_->ended; }));
  }
  /// Waits for so many tokens of choice 0.
  void wait_for_tokens(std::size_t count) const {
    std::unique_lock lock(state_->mutex);
    ASSERT_TRUE(state_->changed.wait_for(lock, std::chrono::seconds(120), [&] {
      return state_->ended || state_->choices[0].ids.size() >= count;
    }));
  }

  HeardChoice choice(std::int64_t index = 0) const {
    const std::lock_guard lock(state_->mutex);
    return state_->choices[index];
  }
  serving::Started started() const {
    const std::lock_guard lock(state_->mutex);
    return state_->started;
  }
  std::vector<serving::Delta> deltas() const {
    const std::lock_guard lock(state_->mutex);
    return state_->deltas;
  }
  serving::Embedded embedded() const {
    const std::lock_guard lock(state_->mutex);
    return state_->embedded;
  }
  /// Empty: the request did not fail.
  std::string failure() const {
    const std::lock_guard lock(state_->mutex);
    return state_->failure;
  }
  bool ended() const {
    const std::lock_guard lock(state_->mutex);
    return state_->ended;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::int64_t open_choices = 1;
    bool ended = false;
    std::map<std::int64_t, HeardChoice> choices;
    serving::Started started;
    std::vector<serving::Delta> deltas;
    serving::Embedded embedded;
    std::string failure;

    void hear(serving::Started event) { started = event; }
    void hear(serving::Delta event) {
      HeardChoice& choice = choices[event.choice];
      EXPECT_FALSE(choice.is_finished);
      if (event.id) choice.ids.push_back(*event.id);
      choice.text += event.text;
      deltas.push_back(std::move(event));
    }
    void hear(serving::Finished event) {
      HeardChoice& choice = choices[event.choice];
      EXPECT_FALSE(choice.is_finished);
      choice.is_finished = true;
      choice.finished = std::move(event);
      ended = --open_choices == 0;
    }
    void hear(serving::Embedded event) {
      embedded = std::move(event);
      ended = true;
    }
    void hear(serving::Failed event) {
      failure = event.message;
      ended = true;
    }
  };
  std::shared_ptr<State> state_;
};

/// Gives a request to the scheduler, which must take it.
inline Listener submit(serving::Scheduler& scheduler, serving::Request request) {
  Listener listener(request.choices);
  const auto taken = scheduler.submit(std::move(request), listener.sink());
  if (const auto* refusal = std::get_if<serving::Refusal>(&taken)) ADD_FAILURE() << refusal->message;
  return listener;
}

/// Choice `choice` of a request as Generation computes it, in a session of its own.
inline HeardChoice compute_alone(Engine& engine, const Tokenizer& tokenizer, const serving::Request& request,
                                 std::int64_t choice = 0) {
  SamplerOptions sampling = request.sampling;
  sampling.choice = static_cast<std::uint32_t>(choice);
  auto sampler = Sampler::create(sampling, engine.model().vocab_size);
  EXPECT_TRUE(sampler.ok());
  Session session = engine.new_session();
  auto generation =
      Generation::start(engine, session, tokenizer, std::move(*sampler), request.prompt, request.limits);
  EXPECT_TRUE(generation.ok());
  HeardChoice heard;
  while (!generation->done()) {
    auto piece = generation->advance();
    EXPECT_TRUE(piece.ok());
    heard.text += *piece;
  }
  heard.ids.assign(generation->ids().begin(), generation->ids().end());
  heard.finished.reason = generation->finish_reason();
  heard.finished.logits_hash = generation->logits_hash();
  return heard;
}

inline void expect_same(const HeardChoice& heard, const HeardChoice& alone, const std::string& what) {
  EXPECT_EQ(heard.ids, alone.ids) << what;
  EXPECT_EQ(heard.text, alone.text) << what;
  EXPECT_EQ(heard.finished.reason, alone.finished.reason) << what;
  EXPECT_EQ(heard.finished.logits_hash, alone.finished.logits_hash) << what;
  EXPECT_EQ(heard.finished.completion_tokens, std::ssize(alone.ids)) << what;
}

}  // namespace eider::test
