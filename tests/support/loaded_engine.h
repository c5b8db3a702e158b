// A checkpoint loaded into an engine, for tests of whole models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/thread_pool.h"
#include "model/model.h"
#include "runtime/engine.h"
#include "tests/support/named_backend.h"

namespace eider::test {

/// Owns everything an engine leans on.
struct LoadedEngine {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Engine> engine;
};

/// `backend`: named_backend.h
inline LoadedEngine load_engine(const std::string& path, int threads, const EngineOptions& options,
                                std::string_view backend = "reference") {
  LoadedEngine loaded;
  auto checkpoint = Checkpoint::open(path);
  if (!checkpoint.ok()) throw std::runtime_error(checkpoint.error().message());
  auto model = load_model(*checkpoint);
  if (!model.ok()) throw std::runtime_error(model.error().message());
  loaded.pool = std::make_unique<ThreadPool>(threads);
  loaded.backend = make_backend(backend, *loaded.pool);
  auto engine = Engine::create(std::move(model).value(), *loaded.backend, options);
  if (!engine.ok()) throw std::runtime_error(engine.error().message());
  loaded.engine = std::move(engine).value();
  return loaded;
}

/// The folder of a golden model: the copy beside the tests, or the shared one; empty where neither is there.
inline std::string golden_folder(const std::string& name) {
  for (const std::string& root :
       {std::string(EIDER_TEST_DATA "/golden/"), std::string(EIDER_SHARED "/goldens/")})
    if (std::filesystem::exists(root + name + "/model.safetensors")) return root + name;
  return {};
}

}  // namespace eider::test
