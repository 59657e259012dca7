"""Sessions: what joins them, what splits them, and how far a change reaches."""

from collections import Counter

import pyarrow as pa
import pytest
from support.rows import NAN, batch, colliding_hash, count_rows

from weirflow.errors import DataError
from weirflow.ivm.operators import session_window
from weirflow.ivm.operators.session_window import SessionWindow
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import Column

TIME = pa.timestamp("us", "UTC")
TYPES = (pa.string(), TIME)
GAP = 10


class Sessions:
    """The operator's output, added up: times by key, with the bounds of their sessions."""

    def __init__(self, types=TYPES, gap=GAP, keys=(0,)):
        columns = [Column(index, f"c{index}", kind) for index, kind in enumerate(types)]
        self.types = types
        self.operator = SessionWindow(types, [columns[key] for key in keys], columns[-1], gap)
        self.rows = Counter()

    def tick(self, rows, weight=1):
        delta = self.operator.step([batch(self.types, rows, [weight] * len(rows))])
        self.operator.commit()
        assert delta.types == self.operator.types
        *columns, window = delta.columns
        bounds = [bound.view(pa.int64()) for bound in window.flatten()]
        plain = Batch((*columns[:-1], columns[-1].view(pa.int64()), *bounds), delta.weights)
        changed = count_rows([plain])
        self.rows.update(changed)
        assert all(weight >= 0 for weight in self.rows.values())
        self.rows = +self.rows
        return changed

    def bounds(self):
        return sorted({row[-2:] for row in self.rows})


def at(*times, key="a"):
    return [(key, time) for time in times]


def test_a_row_exactly_a_gap_later_is_in_the_session_and_one_later_still_is_not():
    sessions = Sessions()
    sessions.tick(at(0, 10, 21))
    assert sessions.rows == {(b"a", 0, 0, 20): 1, (b"a", 10, 0, 20): 1, (b"a", 21, 21, 31): 1}


def test_an_insertion_bridges_two_sessions():
    sessions = Sessions()
    sessions.tick(at(-20, 0))
    assert sessions.bounds() == [(-20, -10), (0, 10)]
    sessions.tick(at(-10))
    assert sessions.bounds() == [(-20, 10)]


def test_a_retraction_splits_a_session():
    sessions = Sessions()
    sessions.tick(at(0, 8, 16, 24))
    assert sessions.bounds() == [(0, 34)]
    sessions.tick(at(8), weight=-1)
    assert sessions.bounds() == [(0, 10), (16, 34)]


def test_a_session_stays_while_one_of_equal_rows_does():
    sessions = Sessions()
    sessions.tick(at(0, 8, 8, 16))
    assert sessions.tick(at(8), weight=-1) == {(b"a", 8, 0, 26): -1}
    sessions.tick(at(8), weight=-1)
    assert sessions.bounds() == [(0, 10), (16, 26)]
    sessions.tick(at(0, 16), weight=-1)
    assert sessions.rows == {}


def test_a_long_session_is_followed_to_both_its_ends():
    sessions = Sessions()
    sessions.tick(at(*range(-5000, 5000, 9)))
    sessions.tick(at(-5000), weight=-1)
    sessions.tick(at(5001))
    assert sessions.bounds() == [(-4991, 5011)]


def test_a_change_reads_and_emits_only_what_it_touches(monkeypatch):
    sessions = Sessions()
    sessions.tick(at(*range(0, 12_000, 12)))
    read = []
    probe = session_window.Arrangement.probe

    def counted(self, *arguments, **options):
        matches = probe(self, *arguments, **options)
        read.append(len(matches))
        return matches

    monkeypatch.setattr(session_window.Arrangement, "probe", counted)
    assert sessions.tick(at(5994)) == {
        (b"a", 5988, 5988, 5998): -1,
        (b"a", 6000, 6000, 6010): -1,
        **{(b"a", time, 5988, 6010): 1 for time in (5988, 5994, 6000)},
    }
    assert sum(read) < 10


def test_keys_are_those_of_group_by():
    types = (pa.float64(), pa.string(), TIME)
    sessions = Sessions(types, keys=(0, 1))
    sessions.tick([(0.0, None, 0), (-0.0, None, 5), (NAN, "x", 0), (NAN, "x", 9), (None, "x", 3), (None, "x", 4)])
    assert sorted(row[-2:] for row in sessions.rows) == [(0, 15), (0, 15), (0, 19), (0, 19), (3, 14), (3, 14)]


def test_rows_without_keys_share_their_sessions():
    sessions = Sessions((TIME,), keys=())
    sessions.tick([(0,), (5,)])
    sessions.tick([(30,), (12,)])
    assert sessions.bounds() == [(0, 22), (30, 40)]


def test_collisions_of_hashes_do_not_matter():
    sessions = Sessions()
    rows = sessions.operator._rows
    sessions.operator._rows = session_window.Arrangement(rows.types, rows.key_count, row_hash=colliding_hash)
    sessions.tick(at(0, 30) + at(5, key="b") + at(7, key=None))
    sessions.tick(at(9) + at(12, key="b"))
    assert sorted((row[0] or b"", *row[-2:]) for row in sessions.rows) == [
        (b"", 7, 17),
        (b"a", 0, 19),
        (b"a", 0, 19),
        (b"a", 30, 40),
        (b"b", 5, 22),
        (b"b", 5, 22),
    ]


def test_without_a_gap_there_are_no_sessions():
    sessions = Sessions(gap=0)
    sessions.tick(at(0, 1))
    assert sessions.rows == {}


def test_times_as_far_apart_as_can_be():
    sessions = Sessions(gap=1)
    sessions.tick(at(-(2**63), 2**63 - 2))
    assert sessions.bounds() == [(-(2**63), -(2**63) + 1), (2**63 - 2, 2**63 - 1)]
    sessions.tick(at(-(2**63) + 1, 2**63 - 3))
    assert sessions.bounds() == [(-(2**63), -(2**63) + 2), (2**63 - 3, 2**63 - 1)]


def test_a_session_that_ends_beyond_the_last_moment_is_an_overflow():
    with pytest.raises(DataError) as raised:
        Sessions().tick(at(2**63 - GAP))
    assert raised.value.condition == "ARITHMETIC_OVERFLOW"


def test_a_tick_that_is_discarded_leaves_no_rows():
    sessions = Sessions()
    sessions.operator.step([batch(TYPES, at(0))])
    sessions.operator.discard()
    sessions.tick(at(5))
    assert sessions.bounds() == [(5, 15)]
