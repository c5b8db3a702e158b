// docs/NUMERICS.md written down once more, word by word and with no thought of speed: recursion where it
// recurses, one value at a time. Backends must give these bits. Only the functions of one float are shared
// with the engine (numerics.h; tests/ops checks them against long double).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "format/storage_format.h"
#include "ops/numerics.h"
#include "tensor/tensor_view.h"

namespace eider::test::literal {

using Floats = std::vector<float>;

inline float tree(std::span<const float> p) {
  if (p.size() == 1) return p[0];
  const std::size_t m = std::bit_floor(p.size() - 1);
  return tree(p.first(m)) + tree(p.subspan(m));
}

/// The reduction of elements 0..n-1, add(a, i) being a with element i added.
inline float reduction(std::size_t n, const std::function<float(float, std::size_t)>& add) {
  Floats blocks;
  for (std::size_t block = 0; block < n; block += 1024) {
    float r[32] = {};
    for (std::size_t i = block; i < std::min(n, block + 1024); ++i) r[i % 32] = add(r[i % 32], i);
    for (int width : {16, 8, 4, 2, 1})
      for (int j = 0; j < width; ++j) r[j] += r[j + width];
    blocks.push_back(r[0]);
  }
  return tree(blocks);
}

inline Floats rms_norm(std::span<const float> x, std::span<const float> weight, float eps) {
  const float ss = reduction(x.size(), [&](float a, std::size_t i) { return std::fma(x[i], x[i], a); });
  const float r = 1.0f / std::sqrt(ss / static_cast<float>(x.size()) + eps);
  Floats y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back((x[i] * r) * weight[i]);
  return y;
}

/// The unit sums of w . x for float weights.
inline Floats float_units(std::span<const float> w, std::span<const float> x) {
  Floats units;
  for (std::size_t begin = 0; begin < x.size(); begin += 32) {
    float a = 0;
    for (std::size_t k = begin; k < std::min(x.size(), begin + 32); ++k) a = std::fma(w[k], x[k], a);
    units.push_back(a);
  }
  return units;
}

struct QuantizedGroup {
  float d;
  std::vector<int> q;
};
inline QuantizedGroup quantize_group(std::span<const float> x) {
  const auto magnitude = [](float v) { return std::bit_cast<std::uint32_t>(v) & 0x7fffffffu; };
  std::uint32_t bits = 0;
  for (float v : x) bits = std::max(bits, magnitude(v));
  const float a = std::bit_cast<float>(bits);
  QuantizedGroup group{0, std::vector<int>(x.size(), 0)};
  if (!std::isfinite(a)) {
    group.d = std::numeric_limits<float>::quiet_NaN();
  } else if (a >= 0x1p-100f) {
    group.d = a / 127;
    const float inverse = 127 / a;
    for (std::size_t i = 0; i < x.size(); ++i) group.q[i] = static_cast<int>(std::nearbyint(x[i] * inverse));
  }
  return group;
}

/// The unit sums of FP8 weights: of values times x * 2^-17, each times its block's scale * 2^17.
inline Floats fp8_units(const TensorView& weight, std::int64_t row, std::span<const float> x) {
  Floats scaled, w(x.size());
  for (const float value : x) {
    const float magnitude = std::abs(value);
    const float taken = magnitude < 0x1p-97f ? 0 : value * 0x1p-17f;
    scaled.push_back(magnitude < 0x1p28f ? taken : std::numeric_limits<float>::quiet_NaN());
  }
  decode_row(weight.format, weight.row(row), weight.columns(), w.data());
  Floats result = float_units(w, scaled);
  if (weight.scales.block_columns > 0)
    for (std::size_t unit = 0; unit < result.size(); ++unit)
      result[unit] *= weight.scales.at(row, static_cast<std::int64_t>(32 * unit)) * 0x1p17f;
  return result;
}

/// A sum of `row` times the row's scale, where the weight has such.
inline float scaled_row(const TensorView& weight, std::int64_t row, float sum) {
  if (weight.format != Format::kFP8_E4M3 || weight.scales.block_columns > 0) return sum;
  return sum * (weight.scales.at(row, 0) * 0x1p17f);
}

/// The units of one row of a weight in any format, multiplied with x.
inline Floats units(const TensorView& weight, std::int64_t row, std::span<const float> x) {
  return visit_format(weight.format, [&]<class F>() {
    const auto* blocks = reinterpret_cast<const typename F::Block*>(weight.row(row));
    Floats result;
    if constexpr (F::kProduct == ProductRule::kFloat) {
      Floats w(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) F::decode(blocks[i], &w[i]);
      result = float_units(w, x);
    } else if constexpr (F::kProduct == ProductRule::kScaledFloat) {
      result = fp8_units(weight, row, x);
    } else if constexpr (F::kProduct == ProductRule::kInteger32) {
      for (std::size_t block = 0; block < x.size() / 32; ++block) {
        const QuantizedGroup group = quantize_group(x.subspan(32 * block, 32));
        Unit32 unit;
        unpack_unit<F>(blocks, static_cast<std::int64_t>(block), unit);
        long dot = 0, sum = 0;
        for (std::size_t i = 0; i < 32; ++i) {
          dot += unit.code[i] * group.q[i];
          sum += group.q[i];
        }
        float u = static_cast<float>(dot) * (unit.scale * group.d);
        if (F::kHasMin) u = std::fma(unit.min * group.d, static_cast<float>(sum), u);
        result.push_back(u);
      }
    } else if constexpr (F::kProduct == ProductRule::kInteger32Halves) {
      for (std::size_t block = 0; block < x.size() / 32; ++block) {
        const QuantizedGroup group = quantize_group(x.subspan(32 * block, 32));
        Unit32Halves unit;
        unpack_unit<F>(blocks, static_cast<std::int64_t>(block), unit);
        long dots[2] = {};
        for (std::size_t i = 0; i < 32; ++i) dots[i / 16] += unit.code[i] * group.q[i];
        const float u = static_cast<float>(dots[0]) * (unit.scale[0] * group.d);
        result.push_back(std::fma(static_cast<float>(dots[1]), unit.scale[1] * group.d, u));
      }
    } else {
      for (std::size_t block = 0; block < x.size() / 256; ++block) {
        const QuantizedGroup group = quantize_group(x.subspan(256 * block, 256));
        Unit256 unit;
        F::unpack(blocks[block], unit);
        long dot = 0, min_sum = 0;
        for (std::size_t j = 0; j < 16; ++j) {
          long sub_dot = 0, sub_sum = 0;
          for (std::size_t i = 16 * j; i < 16 * j + 16; ++i) {
            sub_dot += unit.code[i] * group.q[i];
            sub_sum += group.q[i];
          }
          dot += unit.sub_scale[j] * sub_dot;
          min_sum += unit.sub_min[j] * sub_sum;
        }
        float u = static_cast<float>(dot) * (unit.scale * group.d);
        if (F::kHasMin) u = std::fma(-(unit.min_scale * group.d), static_cast<float>(min_sum), u);
        result.push_back(u);
      }
    }
    return result;
  });
}

/// W x, with the bias added after the tree.
inline Floats product(const TensorView& weight, std::span<const float> x, std::span<const float> bias = {}) {
  Floats y;
  for (std::int64_t row = 0; row < weight.rows(); ++row) {
    const float sum = scaled_row(weight, row, tree(units(weight, row, x)));
    y.push_back(bias.empty() ? sum : sum + bias[static_cast<std::size_t>(row)]);
  }
  return y;
}

/// One query over the keys of positions `visible`, each [head_dim].
inline Floats attention(std::span<const float> q, const std::vector<Floats>& keys,
                        const std::vector<Floats>& values, std::size_t first, std::size_t last, float scale,
                        float softcap) {
  const std::size_t n = q.size();
  bool any = false;
  float m = 0, l = 0;
  Floats o(n);
  for (std::size_t block = first / 128; block <= last / 128; ++block) {
    const std::size_t begin = std::max(first, 128 * block), end = std::min(last + 1, 128 * block + 128);
    Floats s(128), e(128);
    float m_b = -std::numeric_limits<float>::infinity();
    for (std::size_t i = begin; i < end; ++i) {
      float score = tree(float_units(keys[i], q)) * scale;
      if (softcap != 0) score = numerics::soft_cap32(score, softcap);
      s[i % 128] = score;
      m_b = numerics::max32(m_b, score);
    }
    float l_parts[32] =
        {};  // by the key's place in its block; 128 keys are less than one block of a reduction
    Floats o_b(n);
    for (std::size_t i = begin; i < end; ++i) {
      const float weight = numerics::exp32(s[i % 128] - m_b);
      l_parts[i % 32] += weight;
      for (std::size_t d = 0; d < n; ++d) o_b[d] = std::fma(weight, values[i][d], o_b[d]);
    }
    for (int width : {16, 8, 4, 2, 1})
      for (int j = 0; j < width; ++j) l_parts[j] += l_parts[j + width];
    const float l_b = l_parts[0];
    if (!any) {
      m = m_b, l = l_b, o = o_b, any = true;
      continue;
    }
    const float larger = numerics::max32(m, m_b);
    const float a = numerics::exp32(m - larger), b = numerics::exp32(m_b - larger);
    m = larger;
    l = std::fma(l, a, l_b * b);
    for (std::size_t d = 0; d < n; ++d) o[d] = std::fma(o[d], a, o_b[d] * b);
  }
  for (float& value : o) value = value / l;
  return o;
}

struct Pick {
  int expert;
  float weight;
};
inline std::vector<Pick> route(std::span<const float> scores, std::size_t top_k, bool normalize) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int a, int b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return x > y || (!(x < y) && a < b);
  });
  const float max = scores[static_cast<std::size_t>(order[0])];
  order.resize(top_k);
  std::ranges::sort(order);
  const auto e = [&](std::size_t i) { return numerics::exp32(scores[i] - max); };
  float sum = 0;
  for (int expert : order) sum += e(static_cast<std::size_t>(expert));
  if (!normalize) sum = reduction(scores.size(), [&](float a, std::size_t i) { return a + e(i); });
  std::vector<Pick> picks;
  for (int expert : order) picks.push_back({expert, e(static_cast<std::size_t>(expert)) / sum});
  return picks;
}

struct ExpertWeights {
  TensorView gate, up, down;
};
inline Floats moe_ffn(std::span<const float> x, const std::vector<Pick>& picks,
                      const std::vector<ExpertWeights>& experts, const std::function<float(float)>& act) {
  const TensorView& shape = experts[0].down;
  const bool superblock = format_block_elems(shape.format) == 256;
  const std::size_t units_per_group = shape.columns() <= 1024 || superblock ? 1 : 2;
  std::vector<Floats> hidden;
  for (const Pick& pick : picks) {
    const auto& expert = experts[static_cast<std::size_t>(pick.expert)];
    Floats h = product(expert.gate, x);
    const Floats up = product(expert.up, x);
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = act(h[i]) * up[i];
    hidden.push_back(h);
  }
  Floats y;
  for (std::int64_t row = 0; row < shape.rows(); ++row) {
    std::vector<Floats> u;
    for (std::size_t k = 0; k < picks.size(); ++k) {
      const TensorView& down = experts[static_cast<std::size_t>(picks[k].expert)].down;
      u.push_back(units(down, row, hidden[k]));
    }
    Floats p;
    for (std::size_t begin = 0; begin < u[0].size(); begin += units_per_group) {
      float sum = 0;
      for (std::size_t k = 0; k < picks.size(); ++k) {
        const std::size_t count = std::min(units_per_group, u[k].size() - begin);
        const TensorView& down = experts[static_cast<std::size_t>(picks[k].expert)].down;
        const float t = scaled_row(down, row, tree(std::span(u[k]).subspan(begin, count)));
        sum = std::fma(picks[k].weight, t, sum);
      }
      p.push_back(sum);
    }
    y.push_back(tree(p));
  }
  return y;
}

}  // namespace eider::test::literal
