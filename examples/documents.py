"""Questions about a folder of documents, whose answers follow the files: the nearest chunks, as a view.

Files are cut into chunks, each chunk becomes a vector by a function that needs no model and no network, and a view has
the nearest chunks of every question. As files are added, edited and deleted, the answers that change are printed.

Run it with ``python examples/documents.py``; with the address of a PostgreSQL that has pgvector behind it
(``postgresql://...``), a table ``passages`` there follows the files, too.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow import DeltaBatch, IncrementalFlow, spawn_vector_view
from weirflow.vector import PgVectorStore

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSION = 256
ANSWERS = 2
NEAREST = f"""
SELECT q.text AS question, c.id AS chunk, c.text AS answer, c.distance
FROM questions q JOIN LATERAL (
    SELECT c.id, c.text, vector_distance(q.v, c.v, 'cosine') AS distance
    FROM chunks c ORDER BY distance, c.id LIMIT {ANSWERS}
) c ON true
"""  # noqa: S608 - a number of ours

STORY: list[tuple[str, dict[str, str | None]]] = [
    (
        "Three documents are there.",
        {
            "garden.txt": "Tomatoes need sun and a lot of water.\n\nRoses are cut back in early spring.",
            "kitchen.txt": "Bread dough rests for an hour before it is baked.\n\nSoup is better on the second day.",
            "bicycle.txt": "A chain wants oil every few weeks.",
        },
    ),
    ("A document about watering is added.", {"water.txt": "Water tomatoes in the morning, never in the hot sun."}),
    ("The recipe changes.", {"kitchen.txt": "Bread dough rests over night.\n\nSoup is better on the second day."}),
    ("The garden is given up.", {"garden.txt": None}),
]
QUESTIONS = ["How much water do tomatoes need?", "How long does bread dough rest?"]


def embed(text: str) -> list[float]:
    """A vector of length 1 that is near to those of texts with the same words, or with words that look alike."""
    vector = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        marked = f"<{word}>"
        for part in [marked, *(marked[at : at + 3] for at in range(len(marked) - 2))]:
            code = zlib.crc32(part.encode())
            vector[code % DIMENSION] += math.sqrt(len(part)) if code & 1 << 31 else -math.sqrt(len(part))
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def chunks(file: Path) -> Iterator[tuple[str, str]]:
    """The paragraphs of a file, each with a name."""
    for number, text in enumerate(filter(None, re.split(r"\n\s*\n", file.read_text().strip())), 1):
        yield f"{file.name}#{number}", text


def open_library() -> IncrementalFlow:
    """A flow of chunks and questions, and of what is nearest to what."""
    flow = IncrementalFlow("library")
    flow.register_source("chunks", "id STRING, text STRING, v ARRAY<DOUBLE>", key="id")
    flow.register_source("questions", "text STRING, v ARRAY<DOUBLE>", key="text")
    flow.register_view("passages", "SELECT id, text, v FROM chunks")
    flow.register_view("nearest", NEAREST)
    return flow


def follow(flow: IncrementalFlow, folder: Path) -> None:
    """Tick with the chunks that have changed in the folder since the last time; only those are embedded."""
    known = {row["id"]: row["text"] for row in flow.snapshot("chunks").select(["id", "text"]).to_pylist()}
    found = dict(chunk for file in sorted(folder.glob("*.txt")) for chunk in chunks(file))
    changed = [{"id": name, "text": text, "v": embed(text)} for name, text in found.items() if known.get(name) != text]
    gone = [{"id": name} for name in known if name not in found]
    schema = flow.schema("chunks")
    flow.tick("chunks", DeltaBatch.from_inserts(changed, schema=schema) + DeltaBatch.from_deletes(gone, schema=schema))


def ask(flow: IncrementalFlow, questions: list[str]) -> None:
    """Add questions; they stand until they are deleted."""
    flow.tick("questions", [{"text": text, "v": embed(text)} for text in questions])


def show(delta: DeltaBatch) -> None:
    """Print the answers that went and came."""
    rows = delta.to_arrow().to_pylist()
    for row in sorted(rows, key=lambda row: (row["question"], row["_weight"], row["distance"])):
        print(f"  {row['question']:<34} {row['_weight']:+d}  {row['distance']:.2f}  {row['chunk']:<14} {row['answer']}")


def dot(one: list[float], other: list[float]) -> float:
    """The sum of products, added up in the order of the vectors, as SQL defines it."""
    total = 0.0
    for left, right in zip(one, other, strict=True):
        total += left * right
    return total


def prove(flow: IncrementalFlow, folder: Path) -> None:
    """Compare the view with what comparing every question with every chunk finds."""
    vectors = [(name, embed(text)) for file in folder.glob("*.txt") for name, text in chunks(file)]
    expected = []
    for question in QUESTIONS:
        asked = embed(question)
        distances = []
        for name, vector in vectors:
            norms = math.sqrt(dot(asked, asked)) * math.sqrt(dot(vector, vector))
            distances.append((1.0 - dot(asked, vector) / norms, name))
        expected += [(question, name, distance) for distance, name in sorted(distances)[:ANSWERS]]
    found = [(row["question"], row["chunk"], row["distance"]) for row in flow.snapshot("nearest").to_pylist()]
    if sorted(found) != sorted(expected):
        raise SystemExit(f"the view is wrong: {sorted(found)} instead of {sorted(expected)}")
    print("\nChecked: comparing every question with every chunk finds the same answers, to the last bit.")


def main(store: str | None) -> None:
    """Tell the story, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="weirflow-documents-") as name, open_library() as flow:
        folder = Path(name)
        flow.on_delta("nearest", lambda _, delta: show(delta))
        if store is not None:
            table = PgVectorStore(store, "passages", dimension=DIMENSION, metric="cosine", index="hnsw")
            spawn_vector_view(flow, "passages", table, key="id", resync=True)
        for number, (what, files) in enumerate(STORY):
            print(f"\n{what}")
            for file, text in files.items():
                if text is None:
                    (folder / file).unlink()
                else:
                    (folder / file).write_text(text)
            follow(flow, folder)
            if number == 0:
                print("\nTwo questions are asked, and stand.")
                ask(flow, QUESTIONS)
        prove(flow, folder)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
