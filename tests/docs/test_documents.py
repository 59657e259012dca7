"""The example of documents whose nearest chunks are a view runs to its end, and says what it should."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "documents.py"
# What each step changes, written by hand from the story.
CHANGES = {
    "Two questions are asked, and stand.": [
        "How long does bread dough rest? +1 kitchen.txt#1",
        "How long does bread dough rest? +1 garden.txt#2",
        "How much water do tomatoes need? +1 garden.txt#1",
        "How much water do tomatoes need? +1 garden.txt#2",
    ],
    "A document about watering is added.": [
        "How long does bread dough rest? -1 garden.txt#2",
        "How long does bread dough rest? +1 water.txt#1",
        "How much water do tomatoes need? -1 garden.txt#2",
        "How much water do tomatoes need? +1 water.txt#1",
    ],
    "The recipe changes.": [
        "How long does bread dough rest? -1 kitchen.txt#1",
        "How long does bread dough rest? +1 kitchen.txt#1",
    ],
    "The garden is given up.": [
        "How much water do tomatoes need? -1 garden.txt#1",
        "How much water do tomatoes need? +1 kitchen.txt#2",
    ],
}


@pytest.mark.parametrize("stored", [False, True])
def test_the_answers_follow_the_files(tmp_path, postgres, stored):
    address = [postgres.make_database()] if stored else []
    if stored:
        with psycopg.connect(*address) as connection:
            connection.execute("CREATE EXTENSION vector")
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE, *address],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert changes(done.stdout) == CHANGES
    assert "Checked: comparing every question with every chunk finds the same answers" in done.stdout
    if stored:
        with psycopg.connect(*address) as connection:
            rows = connection.execute("SELECT id, text, vector_norm(v) FROM passages ORDER BY id").fetchall()
        assert [(name, text, round(norm, 5)) for name, text, norm in rows] == [
            ("bicycle.txt#1", "A chain wants oil every few weeks.", 1.0),
            ("kitchen.txt#1", "Bread dough rests over night.", 1.0),
            ("kitchen.txt#2", "Soup is better on the second day.", 1.0),
            ("water.txt#1", "Water tomatoes in the morning, never in the hot sun.", 1.0),
        ]


def changes(printed):
    """By the line that tells of a step, the question, weight and chunk of each answer that went or came."""
    found, step = {}, ""
    for line in printed.splitlines():
        if line.startswith("  "):
            question, rest = line.split("?", 1)
            weight, _, chunk, *_ = rest.split()
            found.setdefault(step, []).append(f"{question.strip()}? {weight} {chunk}")
        elif line:
            step = line
    return found
