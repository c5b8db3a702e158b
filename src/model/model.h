// Model: an architecture's configuration and its forward pass over a checkpoint's weights, as a plan. Each
// file beside this one is one architecture: config, weights, forward, in that order. registry.h lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "ops/plan.h"
#include "weights/checkpoint.h"

namespace eider {

struct Model {
  std::string architecture;  ///< model_type of the published config
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  PoolingConfig pooling;  ///< of embeddings
  Plan plan;
  std::shared_ptr<const Checkpoint> checkpoint;  ///< keeps the plan's weights alive
};

/// Reads the configuration, finds every weight, checks every shape and records the plan. A weight of a layer
/// that has no place in it is an error too. Errors name the file and the key or tensor.
Result<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace eider
