// Mixture of experts: the router, and finding the picks of a tile of tokens.

inline void moe_route(const MoeRouteArgs& args, Items tokens) {
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    const float* scores = args.scores + token * args.experts;
    std::int32_t* picks = args.picks + token * args.top_k;
    float* weights = args.weights + token * args.top_k;

    // The best so far, in order of rank.
    std::int64_t count = 0;
    for (std::int64_t expert = 0; expert < args.experts; ++expert) {
      std::int64_t place = count;
      while (place > 0 && ranks_before(scores[expert], expert, scores[picks[place - 1]], picks[place - 1]))
        --place;
      if (place == args.top_k) continue;
      if (count < args.top_k) ++count;
      for (std::int64_t k = count - 1; k > place; --k) picks[k] = picks[k - 1];
      picks[place] = static_cast<std::int32_t>(expert);
    }
    const float max = scores[picks[0]];
    for (std::int64_t i = 1; i < count; ++i)  // insertion sort, into ascending index
      for (std::int64_t k = i; k > 0 && picks[k] < picks[k - 1]; --k) {
        const std::int32_t lower = picks[k];
        picks[k] = picks[k - 1];
        picks[k - 1] = lower;
      }

    float sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      weights[k] = exp32(scores[picks[k]] - max);
      sum += weights[k];
    }
    if (!args.normalize)
      sum = reduce(args.experts, [&](float a, std::int64_t i) { return a + exp32(scores[i] - max); });
    for (std::int64_t k = 0; k < count; ++k) weights[k] = weights[k] / sum;
  }
}

/// The first of picks [begin, end), ascending, whose token is at least `token`.
EIDER_ALWAYS_INLINE std::int64_t first_of_token(const std::int32_t* tokens, std::int64_t begin,
                                                std::int64_t end, std::int64_t token) {
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    if (tokens[middle] < token)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}
