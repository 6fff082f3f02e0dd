"""Tests of `natural_log` against exact decimal arithmetic, and of its bits, which must be the same everywhere."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal, localcontext

import numpy as np

from ninetka_agents.search.logarithm import natural_log


def test_the_error_is_at_most_one_unit_in_the_last_place():
    with localcontext() as context:
        context.prec = 40
        for x in [*range(2, 3000), 10**6 + 1, 2**40 + 1, 10**15, 1.0001, 1.4142135623730951, 1.5, 1e300]:
            exact = Decimal(x).ln()
            error = abs(Decimal(natural_log(float(x))) - exact)
            assert error <= Decimal(math.ulp(float(exact))), x
    assert natural_log(1.0) == 0


def test_the_bits_are_the_same_on_every_machine():
    values = np.array([natural_log(float(n)) for n in range(1, 100_001)])
    assert (np.diff(values) > 0).all()
    digest = hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()
    assert digest == "4bfbe9754a22f604079e1f6e05067d4c9dd2df43c0d51bb0afcc825099c15958"
