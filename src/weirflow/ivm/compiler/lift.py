"""A recursion's step over all levels at once: each row carries the level of the row it was made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weirflow.errors import NotIncremental, Reason
from weirflow.ivm.circuit.first_level import LEVEL
from weirflow.ivm.compiler.columns import identity
from weirflow.sql.bind.recursive_reference import reads
from weirflow.sql.expr import Column, Expr
from weirflow.sql.passes.prune_columns import collapsed
from weirflow.sql.plan import (
    Distinct,
    Field,
    Filter,
    Generate,
    Join,
    JoinKind,
    Plan,
    Project,
    Recursive,
    Scan,
    SetOperation,
    TopK,
    Union,
)
from weirflow.sql.traverse import remap
from weirflow.stack import grows

LEVEL_FIELD = Field("_level", LEVEL)
_PLACES = {TopK: "under LIMIT", SetOperation: "in EXCEPT or INTERSECT", Recursive: "inside another recursion"}


def lift(plan: Recursive) -> Plan:
    """The step with the level as a further last column, also of the rows it scans.

    Parts that do not read the recursion stay as they are. ``NotIncremental`` where a part that does has no meaning
    for each row of the recursion by itself.
    """
    return _Lift(plan.name, plan.distinct).plan(plan.step)


@dataclass(frozen=True)
class _Lift:
    name: str
    distinct: bool

    @grows
    def plan(self, plan: Plan) -> Plan:  # noqa: PLR0911 - one return for each kind of node
        """``plan``, which reads the recursion, with the level behind its columns."""
        match plan:
            case Scan():
                return replace(plan, fields=(*plan.fields, LEVEL_FIELD))
            case Project():
                below = self.plan(plan.input)
                return collapsed(Project(below, (*plan.expressions, _level(below)), (*plan.fields, LEVEL_FIELD)))
            case Filter():
                return replace(plan, input=self.plan(plan.input))
            case Distinct():
                # UNION finds a row once anyway.
                below = self.plan(plan.input)
                return below if self.distinct else Distinct(below)
            case Generate():
                return self._generate(plan)
            case Union() if all(reads(one, self.name) for one in plan.inputs):
                return Union(tuple(self.plan(one) for one in plan.inputs), (*plan.fields, LEVEL_FIELD))
            case Union():
                raise self._refusal("has a part that does not read it", "move that part to the base")
            case Join():
                return self._join(plan)
            case _:
                place = _PLACES.get(type(plan), f"inside {type(plan).__name__.upper()}")
                raise self._refusal(f"reads it {place}", "do that outside of the CTE")

    def _generate(self, plan: Generate) -> Plan:
        below = self.plan(plan.input)
        width = len(plan.input.fields)
        made = replace(plan, input=below, fields=(*below.fields, *plan.fields[width:]))
        return _level_last(made, width)

    def _join(self, plan: Join) -> Plan:
        match (reads(plan.left, self.name), reads(plan.right, self.name), plan.kind):
            case (True, False, JoinKind.INNER | JoinKind.LEFT):
                return _level_last(self._left_lifted(plan), len(plan.left.fields))
            case (True, False, JoinKind.SEMI | JoinKind.ANTI):
                return self._left_lifted(plan)
            case (False, True, JoinKind.INNER | JoinKind.RIGHT):
                return replace(plan, right=self.plan(plan.right))
            case (False, True, JoinKind.SEMI):
                return self._found_in(plan)
            case (True, True, JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI) if not plan.null_aware:
                return self._with_itself(plan)
            case _:
                raise self._refusal(f"reads it inside {plan.kind.upper()} JOIN", "do that outside of the CTE")

    def _left_lifted(self, plan: Join) -> Join:
        width = len(plan.left.fields)
        residual = plan.residual
        if residual is not None:
            residual = remap(residual, lambda index: index if index < width else index + 1)
        return replace(plan, left=self.plan(plan.left), residual=residual)

    def _found_in(self, plan: Join) -> Plan:
        """Rows of another relation that the recursion finds: IN and EXISTS. They get the level they are found at."""
        found = self.plan(plan.right)
        left = identity(plan.left.fields)
        if self.distinct:
            joined = Join(plan.left, found, JoinKind.INNER, plan.left_keys, plan.right_keys, plan.residual)
        elif plan.residual is not None:
            raise self._refusal("compares it in a subquery by more than equality", "use a join, or UNION")
        else:
            keys = tuple(Field(f"_key{index}", key.type) for index, key in enumerate(plan.right_keys))
            once = Distinct(Project(found, (*plan.right_keys, _level(found)), (*keys, LEVEL_FIELD)))
            joined = Join(plan.left, once, JoinKind.INNER, plan.left_keys, identity(keys))
        return Project(joined, (*left, _level(joined)), (*plan.left.fields, LEVEL_FIELD))

    def _with_itself(self, plan: Join) -> Plan:
        """Rows of the same level meet each other."""
        if self.distinct:
            raise self._refusal("reads it twice in a join", "join with the base instead, or use UNION ALL")
        lifted = self._left_lifted(plan)
        right = self.plan(plan.right)
        keys = (*plan.left_keys, _level(lifted.left)), (*plan.right_keys, _level(right))
        joined = replace(lifted, right=right, left_keys=keys[0], right_keys=keys[1])
        if plan.kind is not JoinKind.INNER:
            return joined
        width = len(plan.left.fields)
        both = [*range(width), *range(width + 1, len(joined.fields))]
        columns = tuple(identity(joined.fields)[index] for index in both)
        return Project(joined, columns, tuple(joined.fields[index] for index in both))

    def _refusal(self, what: str, hint: str) -> NotIncremental:
        return NotIncremental(
            f"The step of the recursive CTE {self.name!r} {what}.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint=hint,
        )


def _level(plan: Plan) -> Expr:
    """The last column."""
    return Column(len(plan.fields) - 1, LEVEL_FIELD.name, LEVEL_FIELD.type)


def _level_last(plan: Plan, place: int) -> Plan:
    """The plan with its column at ``place`` behind all others."""
    order = [*range(place), *range(place + 1, len(plan.fields)), place]
    columns = identity(plan.fields)
    return Project(plan, tuple(columns[index] for index in order), tuple(plan.fields[index] for index in order))
