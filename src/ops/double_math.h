// log, exp, sine and cosine in double precision by our own fixed sequences of operations: libm's results
// differ between CPUs and versions, ours do not (docs/NUMERICS.md). For tables, logarithms of probabilities
// and other places that run once a token, not for kernels.
#pragma once

namespace eider {

/// Natural logarithm, within 1 ulp. log64(0) = -inf; NaN for negative numbers and NaN.
double log64(double x);

/// Within 1 ulp; overflows to infinity, underflows through the denormals.
double exp64(double x);

struct SinCos {
  double sin;
  double cos;
};

/// Sine and cosine of an angle in radians, within 1 ulp, for |x| <= 2^30; beyond that, and for NaN, both are
/// NaN.
SinCos sincos64(double x);

}  // namespace eider
