"""``Call`` and ``Answer``: a request as handlers see it, and what they return."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import ConfigError, UnsupportedError
from weirflow.rows.json_values import json_values, to_json
from weirflow.wire.arrow import pack_rows, unpack_rows

if TYPE_CHECKING:
    from weirflow.flows.registry import Flow
    from weirflow.server.access.caller import Caller
    from weirflow.server.coordinator import Coordinator
    from weirflow.server.flight.statements import Statements
    from weirflow.server.kept import Kept
    from weirflow.server.nodes import ServerNodes
    from weirflow.server.results.spool import Spool
    from weirflow.session.operation import Operation

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"

_DEEPEST = 100


@dataclass(frozen=True)
class Parts:
    """What a server has, for handlers."""

    coordinator: Coordinator
    statements: Statements
    spool: Spool
    kept: Kept
    nodes: ServerNodes


@dataclass(frozen=True)
class Answer:
    """What a handler returns: the body, of a type, and a status."""

    body: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request that is about to be handled, in a thread of its own.

    Attributes:
        parts: what the server has.
        caller: who asks.
        path: the parameters of its path.
        query: the parameters behind the question mark.
        headers: by their names in lower case.
        content: its body.
        started: told each operation that is begun for it, which is cancelled if the client leaves.
    """

    parts: Parts
    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes
    started: Callable[[Operation], None] = lambda _: None

    @property
    def coordinator(self) -> Coordinator:
        """The server's."""
        return self.parts.coordinator

    @property
    def flow(self) -> Flow:
        """The flow that the path names."""
        return self.coordinator.flow(self.path["flow"])

    @property
    def wants_arrow(self) -> bool:
        """Whether rows are to be returned as Arrow."""
        return ARROW in self.headers.get("accept", "")

    @property
    def has_arrow(self) -> bool:
        """Whether the body is Arrow's streaming format."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower() == ARROW

    def arrow(self) -> pa.Table:
        """The rows in the body."""
        return unpack_rows(self.content)

    def json(self) -> Any:
        """The body; ``ConfigError`` if it is not JSON."""
        try:
            value = json.loads(self.content or b"null", parse_constant=_refused)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"The body is not JSON: {str(error)[:200]}.") from None
        _require_shallow(value)
        return value

    def object(self, *known: str) -> dict[str, Any]:
        """The body as an object that has none but these members; an empty body is an empty one."""
        value = self.json()
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ConfigError("The body must be a JSON object.", hint=f"its members may be {', '.join(known)}")
        unknown = sorted(value.keys() - set(known))
        if unknown:
            raise ConfigError(
                f"The body has {unknown[0][:100]!r}, which nobody reads.",
                hint=f"its members may be {', '.join(known)}" if known else "it must be empty",
            )
        return value

    def number(self, name: str) -> int | None:
        """A number among the parameters behind the question mark; None if it is not there."""
        text = self.query.get(name)
        if text is None:
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 18:  # noqa: PLR2004 - an int64 has no more digits
            raise ConfigError(f"?{name}= is {text[:50]!r}; it must be a whole number.")
        return int(text)

    def flag(self, name: str) -> bool:
        """Whether a parameter behind the question mark is true."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false", "1", "0"):
            raise ConfigError(f"?{name}= is {text[:50]!r}; it must be true or false.")
        return text in ("true", "1")


def text_of(body: Mapping[str, Any], name: str, *, needed: bool = True) -> Any:
    """A text of a body; ``ConfigError`` if it is something else."""
    value = body.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str):
        raise ConfigError(f"{name!r} in the body must be a text.")
    return value


def seconds_of(body: Mapping[str, Any], name: str = "timeout") -> float | None:
    """A time of a body, in seconds."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**9:
        raise ConfigError(f"{name!r} in the body must be a number of seconds.")
    return float(value)


def answer_json(value: Any, status: int = 200) -> Answer:
    """A value as JSON."""
    return Answer(to_json(value).encode(), JSON, status)


def answer_rows(call: Call, rows: pa.Table, **others: Any) -> Answer:
    """Rows as what the caller wants. As JSON, each row is an object, and ``others`` are beside them.

    Raises:
        UnsupportedError: two columns have one name, and JSON is wanted.
    """
    if call.wants_arrow:
        headers = {f"weirflow-{name}": str(value) for name, value in others.items()}
        return Answer(pack_rows(rows), ARROW, headers=headers)
    columns = [{"name": one.name, "type": str(one.type)} for one in rows.schema]
    return answer_json({**others, "columns": columns, "rows": json_rows(rows)})


def json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as JSON's objects."""
    names = rows.schema.names
    if len(set(names)) < len(names):
        raise UnsupportedError(
            "Two columns have the same name, so the rows cannot be JSON objects.",
            hint=f"rename one with AS, or ask for {ARROW}",
        )
    if not names:
        return [{} for _ in range(rows.num_rows)]
    columns = []
    for column in rows.columns:
        arrays = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        columns.append([value for array in arrays for value in json_values(array)])
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _require_shallow(value: Any) -> None:
    """What is nested deeper than any value of a column is refused here, before something recurses into it."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise ConfigError(f"The body is nested more than {_DEEPEST} deep.")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
