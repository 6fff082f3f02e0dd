"""A logarithm with the same bits on every processor and with every math library.

The last bit of `np.log` depends on the math library, and one bit can change which move a search chooses. IEEE 754 fixes
the results of +, -, * and /, which are all that `natural_log` uses.
"""

from __future__ import annotations

import math

import numpy as np

from ninetka_env.core.jit import jit, readonly_array

_SQRT_HALF = math.sqrt(0.5)
_LN2_HIGH = float.fromhex("0x1.62e42fefap-1")
"""The first 33 bits of ln 2, so that products with exponents are exact."""
_LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
"""ln 2 - `_LN2_HIGH`."""
_COEFFICIENTS = readonly_array([1 / (2 * term + 1) for term in range(11, 0, -1)], np.float64)
"""Coefficients of artanh(s) / s - 1 as a polynomial in s^2, the highest power first."""


@jit
def natural_log(x: float) -> float:
    """Return ln x of a finite x > 0; the error is at most one unit in the last place for x >= 1.

    With x = m 2^e and s = (m - 1) / (m + 1), ln x = e ln 2 + 2 artanh s. For m from sqrt(1/2) to sqrt(2), s^2 is at
    most 0.03, so that the omitted terms are below 2^-58.
    """
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = 2 * mantissa, exponent - 1
    s = (mantissa - 1) / (mantissa + 1)
    square, series = s * s, 0.0
    for coefficient in _COEFFICIENTS:
        series = series * square + coefficient
    return exponent * _LN2_HIGH + (2 * s + (2 * s * (series * square) + exponent * _LN2_LOW))
