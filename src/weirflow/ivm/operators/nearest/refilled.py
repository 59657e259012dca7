"""The nearest documents of queries that were asked elsewhere, found anew among those that are here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.operators.operator import Operator


def search(nearest: Operator, documents: Operator, queries: Sequence[Run]) -> Batch:
    """Fill an operator that lists nothing yet; returns what it shows.

    Args:
        nearest: the operator.
        documents: the store that it reads, with all of its rows.
        queries: the first state of operators that did the same elsewhere.
    """
    assert isinstance(nearest, Nearest)
    assert isinstance(documents, Arrange)
    # Numbers are each operator's own.
    asked = [Batch(run.columns[1:], run.batch.weights) for run in queries]
    stored = list(documents.arrangement.rows())
    with documents.emptied():
        shown = nearest.step(
            [
                Batch.concat([Batch.empty(nearest.left_types), *asked]),
                Batch.concat([Batch.empty(documents.types), *stored]),
            ]
        )
        nearest.commit()
    return shown
