"""``ViewQuery``: what a view is made of, for type checkers: SQL, or of a Session's flow a frame, PySpark's or ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from weirflow.spark.frames.frame import AnyFrame, DataFrame

    ViewQuery: TypeAlias = str | AnyFrame | DataFrame
else:
    ViewQuery = Any  # flows without a Session must not import PySpark to look at an argument
