"""Nodes of Spark's plans: what nobody read is never taken for nothing."""

import pytest

from weirflow.errors import NotIncremental
from weirflow.sql.resolved.node import OMITTED, Node


def leaf(name="x"):
    return Node("catalyst.expressions.Leaf", {"name": name}, ())


def test_a_node_with_a_field_that_nobody_read_is_refused():
    node = Node("catalyst.expressions.Upper", {"child": 0, "strange": True}, (leaf(),), lambda: "upper()")
    assert node.child("child").value("name") == "x"
    with pytest.raises(NotIncremental, match=r"upper\(\) says more to Spark than is known here \(strange\)"):
        node.finish()
    node.ignore("strange")
    node.finish()


def test_a_field_that_spark_did_not_tell_is_refused_where_it_is_needed():
    node = Node("catalyst.expressions.Cast", {"evalMode": OMITTED}, ())
    with pytest.raises(NotIncremental, match="evalMode"):
        node.value("evalMode")
    with pytest.raises(NotIncremental, match="absent"):
        node.value("absent")
    assert node.value("absent", None) is None


def test_children_are_found_by_their_fields():
    node = Node("catalyst.plans.logical.Union", {"children": (1, 0), "first": 0}, (leaf("a"), leaf("b")))
    assert [one.value("name") for one in node.children_of("children")] == ["b", "a"]
    assert node.child("first").value("name") == "a"
    assert node.children_of("others") == ()
    node.finish()


def test_a_child_that_need_not_be_there_is_written_out_in_its_field():
    node = Node("catalyst.expressions.StringTrim", {"srcStr": 0, "trimStr": leaf("b")}, (leaf("a"), leaf("b")))
    assert [node.child(name).value("name") for name in ("srcStr", "trimStr")] == ["a", "b"]
    node.finish()
