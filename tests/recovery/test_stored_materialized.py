"""What refreshes have written, as the version that wrote it first: it is read as it was meant."""

from datetime import UTC, datetime

import msgspec
import pytest

from weirflow.errors import StorageError
from weirflow.flows.sinks.table_commits import TableCommit
from weirflow.materialized.definition import Definition, RefreshPolicy, decode_definition
from weirflow.materialized.history import Cost, Estimate, RefreshRecord
from weirflow.materialized.note import Note, SourceMark, StateName, decode_note
from weirflow.materialized.place import Place
from weirflow.sql.settings import SqlSettings

DEFINITION = (
    '{"id":"5f","sql":"SELECT 1","catalog":"lake","namespace":"gold","settings":{"time_zone":"Europe/Paris",'
    '"ansi":false,"case_sensitive":true,"timestamp_ntz":true},"policy":"incremental strict","format":1}'
)
_READ = '{"lake.shop.orders":{"origin":"a-b","version":"12"},"lake.shop.empty":{"origin":"c-d","version":null}}'
NOTE = (
    f'{{"view":"5f","epoch":3,"attempt":"e7","base":"41","sources":{_READ},"state":{{"generation":"9c","commit":17,'
    f'"sources":{_READ}}},"mode":"full","code":"LARGE_CHANGE","format":1}}'
)
LANDMARK = "d4782466da450b0db55e974a3cdc46929093f34534170e661cf205427320a082\n" + NOTE
RECORD = (
    "ddad95f66367afbea74b84f3497fe262a0487a1b0c7b064cccf585be78c16c17\n"
    '{"epoch":3,"attempt":"e7","finished_at":"2026-01-02T03:04:05Z","mode":"full","code":"LARGE_CHANGE",'
    f'"why":"Much has changed.","version":"42","sources":{_READ},"source_rows":1000,"rows":null,'
    '"estimate":{"changed_rows":7,"incremental_seconds":1.5,"full_seconds":0.5},'
    '"cost":{"seconds":1.0,"state_seconds":2.0,"commit_seconds":0.5},"format":1}'
)
MARKS = {"lake.shop.orders": SourceMark("a-b", "12"), "lake.shop.empty": SourceMark("c-d", None)}
EXPECTED_NOTE = Note("5f", 3, "e7", "41", MARKS, StateName("9c", 17, MARKS), "full", "LARGE_CHANGE")
EXPIRED = TableCommit("42", None, "", changes_rows=True, note=None, is_kept=False)


@pytest.fixture
def place(tmp_path):
    for name, text in (("landmarks/000000000003-42.json", LANDMARK), ("history/000000000003-e7.json", RECORD)):
        file = tmp_path / name
        file.parent.mkdir()
        file.write_text(text)
    return Place(f"file:{tmp_path}")


def test_definitions_and_notes_are_read():
    settings = SqlSettings("Europe/Paris", ansi=False, case_sensitive=True, timestamp_ntz=True)
    expected = Definition("5f", "SELECT 1", "lake", "gold", settings, RefreshPolicy.STRICT)
    assert decode_definition(DEFINITION, "lake.gold.totals") == expected
    assert decode_note(NOTE, "5f") == EXPECTED_NOTE


def test_landmarks_and_history_are_read(place):
    assert place.landmark(EXPIRED) == EXPECTED_NOTE
    assert place.records() == [
        RefreshRecord(
            epoch=3,
            attempt="e7",
            finished_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            mode="full",
            code="LARGE_CHANGE",
            why="Much has changed.",
            version="42",
            sources=MARKS,
            source_rows=1000,
            rows=None,
            estimate=Estimate(7, 1.5, 0.5),
            cost=Cost(1.0, 2.0, 0.5),
        )
    ]


def test_damage_is_named(place, tmp_path):
    file = tmp_path / "landmarks" / "000000000003-42.json"
    file.write_text(LANDMARK.replace("41", "40"))
    with pytest.raises(StorageError, match="checksum"):
        place.landmark(EXPIRED)


def test_only_the_last_landmarks_stay(place, tmp_path):
    for epoch in range(4, 34):
        place.put_landmark(str(epoch), msgspec.structs.replace(EXPECTED_NOTE, epoch=epoch))
    assert len(list((tmp_path / "landmarks").iterdir())) == 10
    assert place.landmark(EXPIRED) is None


def test_states_that_nothing_names_go(place, tmp_path):
    for generation in ("kept", "other"):
        folder = tmp_path / "state" / generation / "commits"
        folder.mkdir(parents=True)
        (folder / "1.json").write_text("{}")
    place.forget_other_states("kept")
    assert [str(file.relative_to(tmp_path)) for file in (tmp_path / "state").rglob("*.json")] == [
        "state/kept/commits/1.json"
    ]
