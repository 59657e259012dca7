"""The graph of a flow: sources on the left, views to the right of what they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.ivm.flow.describe import RelationInfo

_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 170, 46, 230, 66, 12
_COLOURS = {
    "source": "#dbeafe",
    "incremental": "#dcfce7",
    "diff": "#fef3c7",
    "waiting": "#fee2e2",
    "snapshot": "#ede9fe",
}


@dataclass(frozen=True)
class FlowGraph:
    """A flow drawn as a graph; a notebook shows it, ``mermaid`` and ``svg`` are its texts."""

    relations: Sequence[RelationInfo]

    @property
    def mermaid(self) -> str:
        """The graph in Mermaid's language."""
        lines = ["flowchart LR"]
        ids = {one.name: _id(one, number) for number, one in enumerate(self.relations)}
        for one in self.relations:
            shape = f'[("{_title(one)}")]' if one.kind in ("source", "snapshot") else f'["{_title(one)}"]'
            lines.append(f"    {ids[one.name]}{shape}")
        lines += [f"    {ids[read]} --> {ids[one.name]}" for one in self.relations for read in one.reads]
        return "\n".join(lines)

    @property
    def svg(self) -> str:
        """The graph as an SVG document."""
        places = self._places()
        width = _MARGIN * 2 + _WIDTH + _COLUMN * max((x for x, _ in places.values()), default=0)
        height = _MARGIN * 2 + _HEIGHT + _ROW * max((y for _, y in places.values()), default=0)
        size = f'width="{width}" height="{height}"'
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
        for one in self.relations:
            parts += [_line(places[read], places[one.name]) for read in one.reads if read in places]
        parts += [_box(one, places[one.name]) for one in self.relations]
        return "".join([*parts, "</svg>"])

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.mermaid

    def _places(self) -> dict[str, tuple[int, int]]:
        """The column and row of each: a view is one column behind the last of what it reads."""
        known = {one.name: one for one in self.relations}
        columns: dict[str, int] = {}

        @grows
        def column(name: str) -> int:
            if name not in columns:
                columns[name] = 1 + max((column(read) for read in known[name].reads if read in known), default=-1)
            return columns[name]

        rows: dict[int, int] = {}
        places = {}
        for one in self.relations:
            at = column(one.name)
            places[one.name] = (at, rows.get(at, 0))
            rows[at] = rows.get(at, 0) + 1
        return places


def _id(one: RelationInfo, number: int) -> str:
    """What Mermaid calls it: the name of a snapshot is no word."""
    return f"snapshot-{number}" if one.kind == "snapshot" else one.name


def _title(one: RelationInfo) -> str:
    return f"{one.name}<br/>{_subtitle(one)}"


def _subtitle(one: RelationInfo) -> str:
    rows = "rows not kept" if one.rows is None else f"{one.rows:,} rows"
    return f"{one.kind}, {rows}"


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    return _MARGIN + place[0] * _COLUMN, _MARGIN + place[1] * _ROW


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = _corner(start), _corner(end)
    middle = _HEIGHT // 2
    return f'<path d="M{x1 + _WIDTH} {y1 + middle} L{x2} {y2 + middle}" stroke="#64748b" fill="none"/>'


def _box(one: RelationInfo, place: tuple[int, int]) -> str:
    x, y = _corner(place)
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{_COLOURS[one.kind]}" '
        f'stroke="#64748b"/><text x="{x + 10}" y="{y + 20}" font-weight="bold">{escape(one.name)}</text>'
        f'<text x="{x + 10}" y="{y + 36}">{escape(_subtitle(one))}</text>'
    )
