"""Operators that can be stepped several times within a tick: each step reads what the earlier ones brought.

``commit`` ends a step and ``discard`` drops one; ``keep`` and ``forget`` then decide about all steps of the tick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.layered import Layered
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.distinct import Distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.zset.batch import Batch
