"""A library whose chunks are in a vector store; as a script, a nursery of such flows that are killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirflow import DeltaBatch, IncrementalFlow, spawn_vector_view
from weirflow.vector import PgVectorStore

if TYPE_CHECKING:
    from weirflow import Sink

DIMENSION = 3
DOCS = "id BIGINT, body STRING, v ARRAY<FLOAT>"
CHUNKS = "SELECT id, upper(body) AS body, v FROM docs WHERE id % 7 <> 3"
ADDRESS = "address"
"""The file beside a flow's folder that says where its store is."""


def declare(flow: Any) -> Any:
    """The source and the view."""
    flow.register_source("docs", DOCS, key="id")
    flow.register_view("chunks", CHUNKS)
    return flow


def store(uri: str, **options: Any) -> PgVectorStore:
    return PgVectorStore(uri, "chunks", **{"dimension": DIMENSION, **options})


def changes(number: int) -> tuple[list[dict[str, Any]], list[int]]:
    """What a tick writes, and which documents it takes away; each text and vector is there in one tick alone."""
    written = [number * 2, number * 2 + 1, number // 2, number * 5 % 11]
    gone = {number - 4, number * 3 % 8} - set(written)
    rows = [{"id": one, "body": f"{one}@{number}", "v": [one, number, 0.25]} for one in dict.fromkeys(written)]
    return rows, sorted(gone)


def run(flow: Any, ticks: int) -> None:
    """Tick up to an epoch, from where the flow is."""
    while flow.epoch < ticks:
        rows, gone = changes(flow.epoch + 1)
        known = {row["id"] for row in flow.snapshot("docs").to_pylist()}
        deleted = DeltaBatch.from_deletes([{"id": one} for one in gone if one in known], schema=flow.schema("docs"))
        flow.tick("docs", DeltaBatch.from_inserts(rows, schema=flow.schema("docs")) + deleted)


def expected(ticks: int) -> dict[int, tuple[str, list[float]]]:
    """What the view has after so many ticks, found without a flow."""
    docs: dict[int, tuple[str, list[float]]] = {}
    for number in range(1, ticks + 1):
        rows, gone = changes(number)
        docs.update({row["id"]: (row["body"].upper(), row["v"]) for row in rows})
        for one in gone:
            docs.pop(one, None)
    return {one: row for one, row in docs.items() if one % 7 != 3}


def _live(order: dict[str, Any]) -> None:
    die_at(order)
    path = Path(order["path"])
    every = order["checkpoint_every"]
    with IncrementalFlow("library", path=path, checkpoint_every=every, fsync=0) as flow:
        declare(flow)
        spawn(flow, (path.parent / ADDRESS).read_text(), every=1 + every % 3)
        run(flow, order["ticks"])


def spawn(flow: Any, uri: str, **options: Any) -> Sink:
    return spawn_vector_view(flow, "chunks", store(uri, index="hnsw", metric="l2"), key="id", **options)


if __name__ == "__main__":
    from support.nursery import die_at, serve

    with IncrementalFlow("library") as first:  # what is imported and made at first use is there for all children
        run(declare(first), 2)
    PgVectorStore("postgresql://nobody@nowhere/nothing", "chunks", dimension=DIMENSION)
    serve(_live)
