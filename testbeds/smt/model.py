"""The arrays on which the search works.

A variable's domain is a mask: bit b stands for the value b + ``base``. A row is a constraint; ``active`` says which
rows count. Each kind of row reads its two numbers ``low`` and ``high`` in a way of its own:

==========  =====================================================  =================================================
kind        numbers                                                weights of its variables
==========  =====================================================  =================================================
UNARY       low: mask of the permitted values                      none
RELATION    low: which relation                                    none
DIFFERENT   none                                                   offsets, the lowest 0
LINEAR      bounds on the sum, both included                       coefficients
TABLE       places in ``rows``: from, up to                        none
FORMULA     places in ``program``: from, up to                     none
==========  =====================================================  =================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

UNARY, RELATION, DIFFERENT, LINEAR, TABLE, FORMULA = range(6)
NOT, AND, OR, IFF = -1, -2, -3, -4  # operators of a program; a number from 0 up is a row
FALSE, TRUE, UNKNOWN = 0, 1, 2
JUDGE, CHECK, PROPAGATE = -1, 0, 1
"""When a row of several variables acts. JUDGE: once all are known (a DIFFERENT row: two), so that it removes nothing
but
only fails. CHECK: once all but one are known. PROPAGATE: whenever it can."""


class Model(NamedTuple):
    """A puzzle as arrays."""

    base: int
    kinds: Integers
    low: Integers
    starts: Integers
    """Where the variables of each row start in ``variables`` and ``weights``; one more at the end."""
    variables: Integers
    weights: Integers
    forward: Integers
    """[relation, bit of the left] -> mask of the right."""
    backward: Integers
    rows: Integers
    """Rows of tables, as bits, one after the other."""
    program: Integers
    """Formulas in postfix order."""
    touch_starts: Integers
    touch: Integers
    """Rows that each variable touches."""
