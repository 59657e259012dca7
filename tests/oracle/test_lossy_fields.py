"""What Spark's JSON of a plan does not tell: every such field of a class that is imported is known, one row each.

A version of Spark that has another one fails here, before a view is read without it.
"""

import re
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from support.function_examples import examples
from support.maintained import Maintained, comparable
from support.spark_engine import plan_reader

from weirflow.errors import QueryError
from weirflow.flows.own_session import settings_of
from weirflow.flows.recompute import view_schema
from weirflow.spark.analyzed.omitted import OMISSIONS
from weirflow.sql.resolved import aggregates, functions, reading, relations, windows
from weirflow.sql.types import nullable

CATALYST = "org.apache.spark.sql.catalyst."
PACKAGES = ("expressions.", "expressions.aggregate.", "plans.logical.")
READ_INSIDE = (
    "CommonExpressionDef",
    "CTERelationDef",
    "LateralSubquery",
    "ListQuery",
    "LocalLimit",
    "NthValue",
    "PivotFirst",
    "SortOrder",
    "SpecifiedWindowFrame",
    "WindowExpression",
    "WindowSpecDefinition",
)
"""Classes that are read by those around them."""
OF_OTHER_VERSIONS = {"TimeAdd"}
_TOLD = """
    boolean int long double String DataType ExprId Expression LogicalPlan NamedExpression AggregateFunction Generator
    ListQuery LateralSubquery WindowSpecDefinition WindowFrame
    Seq<Expression> Seq<Attribute> Seq<NamedExpression> Seq<SortOrder> Seq<LogicalPlan>
    Seq<CommonExpressionDef> Seq<CTERelationDef> Seq<ExprId> Seq<Tuple2<Expression,Expression>> Option<String>
    Option<Object> Option<Expression> Option<Literal> Option<LogicalPlan> AggregateMode JoinType SortDirection
    NullOrdering FrameType AliasIdentifier CatalogTable StructField Metadata Option<Metadata>
"""
TOLD = frozenset(_TOLD.split())
"""Types of fields that JSON has all of: values, trees, lists and options of them, objects by their names."""

ASKED, HARMLESS, REFUSED = "asked of the object", "makes no difference to the rows", "refused if there is one"
LOSSY = {
    **{
        f"{name}.evalContext": ASKED
        for name in ("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "Sum")
    },
    "Cast.evalMode": ASKED,
    "Average.evalMode": ASKED,
    "Like.escapeChar": ASKED,
    "ILike.escapeChar": ASKED,
    "CommonExpressionDef.id": ASKED,
    "CommonExpressionRef.id": ASKED,
    "Literal.value": ASKED,
    "LocalRelation.data": ASKED,
    "Expand.projections": ASKED,
    "PivotFirst.pivotColumnValues": ASKED,
    "JsonToStructs.options": ASKED,
    "StructsToJson.options": ASKED,
    "SchemaOfJson.options": ASKED,
    "Generate.unrequiredChildIndex": REFUSED,
    "LocalRelation.stream": REFUSED,
    # Only how a column is called, and where in the text it was.
    "Alias.qualifier": HARMLESS,
    "Alias.nonInheritableMetadataKeys": HARMLESS,
    "AttributeReference.qualifier": HARMLESS,
    # Only how Spark runs it.
    **{
        f"{name}.hint": HARMLESS
        for name in (
            "Aggregate",
            "Exists",
            "Join",
            "LateralSubquery",
            "ListQuery",
            "ScalarSubquery",
            "Sort",
            "Window",
        )
    },
    # What a lambda's variable is while it is evaluated.
    "NamedLambdaVariable.value": HARMLESS,
    "ResolvedHint.hints": HARMLESS,
    "CTERelationRef.statsOpt": HARMLESS,
    "CTERelationDef.originalPlanWithPredicates": HARMLESS,
    "View.options": HARMLESS,
}
"""Each field that JSON leaves out, garbles or may cut, and what is done about it."""


def imported_classes():
    tables = (
        functions.FUNCTIONS,
        functions.CHILD_ONLY,
        reading._READERS,
        aggregates.AGGREGATE_CLASSES,
        aggregates._READERS,
        relations.PlanReader._READERS,
        relations._GENERATORS,
        windows._RANKING,
        windows._OFFSET,
        READ_INSIDE,
    )
    return sorted({name for table in tables for name in table} - OF_OTHER_VERSIONS)


def fields_of(loader, name):
    """The fields of a class of Spark's trees with their types, without packages: those of its longest constructors."""
    for package in PACKAGES:
        try:
            constructors = list(loader.loadClass(f"{CATALYST}{package}{name}").getConstructors())
        except Py4JJavaError:
            continue
        longest = max(one.getParameterCount() for one in constructors)
        made = [part for one in constructors if one.getParameterCount() == longest for part in one.getParameters()]
        return {(part.getName(), short(part.getParameterizedType().toString())) for part in made}
    raise AssertionError(f"Spark has no class {name}")


def short(kind):
    return re.sub(r"(?:class|interface) | |(?:\w+[.$])+", "", kind)


def test_every_field_that_the_plan_does_not_tell_is_known(session):
    loader = session.spark._jsparkSession.getClass().getClassLoader()
    found = {
        f"{name}.{field}" for name in imported_classes() for field, kind in fields_of(loader, name) if kind not in TOLD
    }
    assert found == LOSSY.keys()


def test_what_is_asked_of_objects_is_known():
    """Literals, constants and projections are asked for by the tree itself."""
    asked = {f"{name}.{field}" for name, fields in OMISSIONS.items() for field in fields}
    of_the_tree = {"Literal.value", "LocalRelation.data", "Expand.projections", "PivotFirst.pivotColumnValues"}
    assert asked | of_the_tree == {field for field, how in LOSSY.items() if how == ASKED}


def check_examples(session, texts):
    """The examples that are imported, each with the rows that Spark returns."""
    reader, settings = plan_reader(session.spark.newSession), settings_of(session.spark)
    same = 0
    for text in texts:
        try:
            plan = reader.read(text, {}, settings)
            views = Maintained({}, {"v": text}, {"v": plan})
        except (QueryError, PySparkException, Py4JJavaError):  # Spark refuses some of its examples, too
            continue
        expected = session.spark.sql(text).toArrow()
        expected = expected.cast(view_schema(expected.schema))
        rows = Counter(
            zip(*([comparable(value) for value in column.to_pylist()] for column in expected.columns), strict=True)
        )
        assert views.schemas["v"].types == [nullable(kind) for kind in expected.schema.types], text
        assert views.views["v"] == rows, text
        same += 1
    return same


UNORDERED = ("array_agg(col)", "collect_list(col)")
"""Of which Spark says that any order will do."""


def documented(session):
    return [text for text in examples(session.spark) if not any(one in text for one in UNORDERED)]


def test_a_part_of_the_documented_examples_is_what_spark_makes_of_it(session):
    assert check_examples(session, documented(session)[::25]) > 10


@pytest.mark.campaign
def test_the_documented_examples_are_what_spark_makes_of_them(session):
    assert check_examples(session, documented(session)) > 350
