"""A flow with joins as an earlier version has stored it, when sources and joins had rows of their own: it goes on.

``stored/joins.zip`` was written by ``support/stored_joins.py`` with the code of commit ff429cb.
"""

import zipfile
from collections import Counter
from pathlib import Path

import pytest
from support.stored_joins import BONN, NAME, SALES, VIEWS, delta

from weirflow.errors import DataError
from weirflow.ivm.durability.checkup import check_flow
from weirflow.ivm.flow import IncrementalFlow

STORED = Path(__file__).parent / "stored" / "joins.zip"
NAMED = [(1, "a", "Ulm"), (2, "b", "Bonn"), (3, None, None), (3, None, None), (4, "c", None)]


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    return tmp_path / "flow"


def require(flow, sales, towns, named):
    wanted = {"sales": sales, "towns": towns, "named": named}
    found = {name: Counter(tuple(row.values()) for row in flow.snapshot(name).to_pylist()) for name in wanted}
    assert found == {name: Counter(rows) for name, rows in wanted.items()}
    with pytest.raises(DataError, match="holds 0 times"):
        flow.tick("sales", delta("sales", [], [(1, 1, "a", 2.5)]))


def test_a_flow_whose_joins_had_rows_of_their_own_goes_on(folder):
    assert check_flow(folder).is_whole
    with IncrementalFlow(NAME, path=folder) as flow:
        require(flow, SALES, [("Ulm", 1.5), ("Bonn", 2.5)], NAMED)
        flow.tick({"sales": delta("sales", [(5, 2, "d", 1.0)], [SALES[0]]), "shops": delta("shops", [], [BONN])})
        after = [*SALES[1:], (5, 2, "d", 1.0)], [], [(2, "b", None), *NAMED[2:], (5, "d", None)]
        require(flow, *after)
        flow.checkpoint()
    with IncrementalFlow(NAME, path=folder) as flow:
        require(flow, *after)


def test_its_views_are_kept_as_they_are_until_they_are_made_anew(folder):
    with IncrementalFlow(NAME, path=folder) as flow:
        assert "project" not in flow.explain("sales")  # by the whole row, as it was stored
        for name, sql in VIEWS.items():
            flow.drop(name)
            flow.register_view(name, sql)
        assert "project" in flow.explain("sales")  # by the key of the joins
        require(flow, SALES, [("Ulm", 1.5), ("Bonn", 2.5)], NAMED)
