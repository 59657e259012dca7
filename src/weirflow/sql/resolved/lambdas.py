"""Spark's higher-order functions as ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr
from weirflow.sql.functions.higher_order import call, sorts_as_usual
from weirflow.sql.lambdas import lambda_call, variable
from weirflow.sql.resolved.types import type_of

if TYPE_CHECKING:
    from weirflow.sql.resolved.node import Node
    from weirflow.sql.resolved.reading import Scope

    Read = Callable[[Node, Scope], Expr]

HIGHER_ORDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "ArrayTransform": ("transform", ("argument", "function")),
    "ArrayFilter": ("filter", ("argument", "function")),
    "ArrayExists": ("exists", ("argument", "function")),
    "ArrayForAll": ("forall", ("argument", "function")),
    "ArrayAggregate": ("aggregate", ("argument", "zero", "merge", "finish")),
    "ZipWith": ("zip_with", ("left", "right", "function")),
    "ArraySort": ("array_sort", ("argument", "function")),
    "MapFilter": ("map_filter", ("argument", "function")),
    "TransformKeys": ("transform_keys", ("argument", "function")),
    "TransformValues": ("transform_values", ("argument", "function")),
    "MapZipWith": ("map_zip_with", ("left", "right", "function")),
}
"""By Spark's class: our name, and the fields that are the arguments."""
SETTINGS = {"ArrayExists": ("followThreeValuedLogic", True), "ArraySort": ("allowNullComparisonResult", False)}
"""Fields that have these values unless the session is told to be as old versions were."""


def read_higher_order(node: Node, scope: Scope, read: Read) -> Expr | None:
    """The call of a higher-order function; None if it is set to another meaning than ours."""
    name, fields = HIGHER_ORDER[node.kind]
    if node.kind in SETTINGS:
        setting, wanted = SETTINGS[node.kind]
        if node.value(setting) is not wanted:
            return None
    arguments = tuple(_argument(node.child(field), scope, read) for field in fields)
    if name == "array_sort" and sorts_as_usual(arguments[1]):
        return Call(name, arguments[:1], arguments[0].type)
    return call(name, arguments)


def _argument(node: Node, scope: Scope, read: Read) -> Expr:
    return _lambda(node, scope, read) if node.kind == "LambdaFunction" else read(node, scope)


def _lambda(node: Node, scope: Scope, read: Read) -> Expr:
    """A lambda, of which Spark evaluates no part: what it has no counterpart for is its whole function's matter."""
    node.ignore("hidden")
    known, bound = dict(scope.variables), []
    for one in node.children_of("arguments"):
        made = variable(len(known), type_of(one.value("dataType")))
        known[one.value("exprId")] = made
        bound.append(made)
    body = read(node.child("function"), replace(scope, variables=known, foreign=None))
    node.finish()
    return lambda_call(tuple(bound), body)


def read_variable(node: Node, scope: Scope) -> Expr | None:
    """A variable of a lambda around; None if there is none."""
    node.ignore("name", "dataType", "nullable", "value")
    return scope.variables.get(node.value("exprId"))
