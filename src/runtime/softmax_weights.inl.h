// softmax_weights, compiled once for each instruction set (softmax_weights*.cpp).

inline void softmax_weights(float* values, std::size_t count, float best) {
  for (std::size_t i = 0; i < count; ++i) {
    // Equal logits need no exp, and two infinities must not be subtracted.
    const float weight = numerics::exp32(values[i] - best);
    values[i] = values[i] == best ? 1.0f : weight;
  }
}
