"""How ``benchmarks/ticks.py`` talks to the peers that are programs: columns in files, one line for each request."""

import sys

import numpy as np
import peers
import pyarrow as pa
import pytest
from ticking.child import Scenario
from ticking.data import dims, facts, weighted, write
from ticking.emitted import added_up
from ticking.program import Program, received, send
from ticking.views import VIEWS

# Emits a row at the start, and replaces it at each tick by what the delta's first weight says.
PROGRAM = """#!{python}
import sys
from pathlib import Path
import numpy as np
view, folder = sys.argv[1], Path(sys.argv[2])
assert view == "top-10"
rows = [(7, len(np.fromfile(folder / "base.facts.k", "<i8")), 1)]
assert len((folder / "base.dims.region").read_text().splitlines()) == 1
print(2.5, flush=True)
for line in sys.stdin:
    if line == "tick\\n":
        (key, total), weight = rows[-1][:2], np.fromfile(folder / "delta.facts.weight", "<i8")[0]
        rows += [(key, total, -1), (key, total + weight, 1)]
        print(0.25, flush=True)
    else:
        for name, column in zip(("0", "1", "weight"), zip(*rows)):
            np.array(column, "<i8").tofile(folder / f"view.{{name}}")
        print("done", flush=True)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "program"
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o700)
    monkeypatch.setattr(peers, "program_of", lambda _: path)
    program = Program("differential")
    yield program
    program.process.communicate(timeout=60)
    assert program.process.returncode == 0


def test_a_program_is_asked_for_ticks_and_rows(program, tmp_path):
    write(tmp_path / "facts", [facts(np.arange(100), 100)])
    write(tmp_path / "dims", [dims(np.arange(1), np.zeros(1))])
    scenario = Scenario(VIEWS["top-10"], 100, tmp_path / "facts", tmp_path / "dims", tmp_path / "deltas")
    assert program.open(scenario) == 2.5
    assert program.tick(weighted(facts(np.arange(1), 100), np.array([-1]))).seconds == 0.25
    assert program.view().to_pylist() == [{"k": 7, "total": 99}]


def test_columns_are_numbers_or_lines(tmp_path):
    rows = pa.record_batch({"d": [3, -4], "region": ["a b", "é"], "_weight": [1, -1]})
    paths = send(tmp_path, "delta.dims", rows)
    assert [path.name for path in paths] == ["delta.dims.d", "delta.dims.region", "delta.dims.weight"]
    assert np.fromfile(paths[0], "<i8").tolist() == [3, -4]
    assert paths[1].read_text() == "a b\né\n"


def test_deltas_of_a_view_are_read_by_its_columns(tmp_path):
    (tmp_path / "view.0").write_text("north\nsouth\n")
    np.array([0.5, -1.25]).tofile(tmp_path / "view.1")
    np.array([1, 2]).tofile(tmp_path / "view.2")
    np.array([1, -1]).tofile(tmp_path / "view.weight")
    assert received(tmp_path, VIEWS["join"]).to_pylist() == [
        {"region": "north", "total": 0.5, "n": 1, "_weight": 1},
        {"region": "south", "total": -1.25, "n": 2, "_weight": -1},
    ]


def test_deltas_add_up_to_rows_that_are_there_once():
    deltas = pa.table({"k": [1, 2, 1, 1], "v": [0.5, 1.0, 0.5, 0.5], "_weight": [1, 1, -1, 1]})
    assert added_up(deltas).sort_by("k").to_pylist() == [{"k": 1, "v": 0.5}, {"k": 2, "v": 1.0}]


@pytest.mark.parametrize("weight", [-1, 2])
def test_a_row_that_is_there_otherwise_is_an_error(weight):
    with pytest.raises(AssertionError, match="weight other than one"):
        added_up(pa.table({"k": [1], "_weight": [weight]}))


def test_a_program_that_is_not_built_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(peers, "program_of", lambda _: None)
    with pytest.raises(RuntimeError, match=r"benchmarks/peers\.py"):
        Program("differential")


def test_without_cargo_a_program_is_left_out_with_one_line(monkeypatch, capsys):
    monkeypatch.setattr(peers.shutil, "which", lambda _: None)
    assert peers.main(["differential"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "differential is left out: building it takes cargo, which is not there"
    ]


@pytest.mark.parametrize("peer", peers.PROGRAMS)
def test_programs_measure_pinned_versions(peer):
    assert peers.pinned(peer).split(".")[0].isdigit()
