#!/usr/bin/env python3
"""Prints the polynomials of src/ops/numerics.inl.h: coefficients rounded to float32, lowest power first, and the largest
relative error that they cause before rounding errors of their evaluation.

Each is a fit of least maximal error (Lawson's reweighted least squares, in long double) of the part of a function that
its exact leading terms leave.
"""

import numpy as np

Real = np.longdouble


def fit(function, weight, degree, low, high, points=4000, rounds=60):
    """Coefficients c with max |weight * (function - c)| least over [low, high], and that maximum once c is rounded."""
    x = (Real(low) + Real(high)) / 2 + (Real(high) - Real(low)) / 2 * np.cos(np.pi * (np.arange(points) + Real(0.5)) / points)
    y, w = function(x), weight(x)
    scale = Real(max(abs(low), abs(high)))
    powers = np.vander(x / scale, degree + 1, increasing=True)
    importance = np.ones(points)
    for _ in range(rounds):
        row_weight = w * np.sqrt(importance)
        c = np.zeros(degree + 1, dtype=Real)
        for _ in range(3):  # solved in double, refined in long double
            residual = row_weight * (y - powers @ c)
            c = c + np.linalg.lstsq((row_weight[:, None] * powers).astype(float), residual.astype(float), rcond=None)[0]
        error = np.abs(w * (y - powers @ c))
        importance = np.maximum(importance * (error / error.max()).astype(float), 1e-30)
        importance /= importance.sum()
    rounded = [np.float32(c[k] / scale**k) for k in range(degree + 1)]
    return rounded, np.abs(w * (y - sum(Real(v) * x**k for k, v in enumerate(rounded)))).max()


def exp_tail(r):
    """(exp(r) - 1 - r) / r^2"""
    series = Real(1) / 2 + r / 6 + r**2 / 24 + r**3 / 120 + r**4 / 720
    return np.where(np.abs(r) < 1e-3, series, (np.expm1(r) - r) / np.where(r == 0, 1, r * r))


def tanh_tail(z):
    """(tanh(a) / a - 1) / z, z = a^2"""
    a = np.sqrt(z)
    return np.where(z < 1e-5, -Real(1) / 3 + 2 * z / 15 - 17 * z**2 / 315, (np.tanh(a) / a - 1) / z)


def atanh_tail(z):
    """(2 atanh(s) / s - 2) / z, z = s^2"""
    s = np.sqrt(z)
    return np.where(z < 1e-5, Real(2) / 3 + 2 * z / 5 + 2 * z**2 / 7 + 2 * z**3 / 9, (2 * np.arctanh(s) / s - 2) / z)


def main():
    half_ln2 = float(np.log(2) / 2) * 1.0001
    fits = {
        "exp32, tail on [-ln2/2, ln2/2]": fit(exp_tail, lambda r: r * r / np.exp(r), 4, -half_ln2, half_ln2),
        "tanh32, tail in z = a^2 for a < 0.55": fit(
            tanh_tail, lambda z: z * np.sqrt(z) / np.tanh(np.sqrt(z)), 4, 0, 0.55**2),
        "softplus32, tail in z = s^2 for s <= 1/3": fit(
            atanh_tail, lambda z: z * np.sqrt(z) / (2 * np.arctanh(np.sqrt(z))), 4, 0, 1 / 9),
    }
    for name, (coefficients, error) in fits.items():
        print(f"{name}: relative error 2^{float(np.log2(error)):.2f}")
        for coefficient in coefficients:
            print(f"  {float(coefficient).hex()}")


if __name__ == "__main__":
    main()
