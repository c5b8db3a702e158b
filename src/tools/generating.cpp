#include "tools/generating.h"

#include <random>

namespace eider {

Result<std::string> generate(Generation& generation, const std::function<Status(const std::string&)>& sink,
                             const Terminal& terminal, const InterruptGuard& interrupt) {
  std::string text;
  ProgressBar bar(terminal, "reading the prompt");
  while (!generation.done()) {
    if (interrupt.interrupted()) generation.cancel();
    EIDER_TRY(const std::string piece, generation.advance());
    if (generation.state() == Generation::State::kPrefill)
      bar.update(generation.prefilled(), generation.prompt_tokens());
    else
      bar.erase();
    if (piece.empty()) continue;
    text += piece;
    EIDER_TRY_STATUS(sink(piece));
  }
  return text;
}

std::uint64_t draw_seed() {
  return std::random_device()();
}

}  // namespace eider
