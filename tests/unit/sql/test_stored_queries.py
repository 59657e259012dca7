"""Plans over snapshots: the text that is run in the view's place is stored with them, under a version of its own."""

import json

import pytest

from weirflow.errors import NotIncremental, Reason, StorageError
from weirflow.ivm.compiler.reads import reads
from weirflow.ivm.compiler.view import View
from weirflow.sql.plan import Field, Scan
from weirflow.sql.stored import decode_plan, encode_plan, encode_refusal, outline, with_query
from weirflow.sql.types import INT

NAME = "snapshot of shop.T"
PLAN = Scan(NAME, (Field("a", INT),))
QUERY = f"SELECT a FROM `{NAME}` AS t"
# As version 2 was written first.
STORED = (
    '{"version":2,"types":["int32"],"nodes":[["scan","snapshot of shop.T",[["a",0]],null]],'
    '"query":"SELECT a FROM `snapshot of shop.T` AS t"}'
)
REFUSED = (
    '{"version":2,"refusal":["FUNCTION_NOT_PROVEN","No.",null,null],"reads":["snapshot of shop.t"],'
    '"query":"SELECT a FROM `snapshot of shop.T` AS t"}'
)


def test_what_is_written_is_what_was_written_and_is_read_again():
    assert with_query(encode_plan(PLAN), QUERY) == STORED
    assert decode_plan(STORED) == PLAN
    assert outline(STORED).query == QUERY
    refusal = NotIncremental("No.", reason=Reason.FUNCTION_NOT_PROVEN)
    assert with_query(encode_refusal(refusal, [NAME]), QUERY) == REFUSED
    assert outline(REFUSED).query == QUERY
    with pytest.raises(NotIncremental, match=r"No\."):
        decode_plan(REFUSED)


def test_a_view_is_declared_by_its_own_text_and_runs_the_other():
    view = View("SELECT a FROM shop.t", plan=REFUSED)
    assert view.query == QUERY
    assert reads(view) == {"snapshot of shop.t"}
    assert view.is_declared_as(View("SELECT a FROM shop.t"))
    assert View("SELECT 1").query == "SELECT 1"


@pytest.mark.parametrize(
    "damaged", [json.loads(STORED) | {"query": 7}, {k: v for k, v in json.loads(STORED).items() if k != "query"}]
)
def test_a_text_without_what_it_must_say_is_damaged(damaged):
    with pytest.raises(StorageError, match="damaged"):
        decode_plan(json.dumps(damaged))
