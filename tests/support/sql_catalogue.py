"""Every construct of SQL that a view may hold or is refused for, with one example each.

The examples are compiled, compared with Spark after random ticks, and printed as ``docs/sql-support.md``.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

from support.compiled_views import compile_views
from support.view_corpus import SOURCES as TABLES
from support.view_corpus import RandomTables

from weirflow.errors import NotIncremental
from weirflow.ivm.kernel.expressions import zoned, zones
from weirflow.ivm.kernel.expressions.registry import FUNCTIONS
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.clocked.operator import Clocked
from weirflow.ivm.operators.session_window import SessionWindow
from weirflow.ivm.operators.window.operator import Extent, Window
from weirflow.sql.clock.relation import CLOCK, CLOCK_SCHEMA
from weirflow.sql.functions.vectors import AVERAGE, VECTORS
from weirflow.sql.typing.type_syntax import parse_ddl

INCREMENTAL = "incremental"
RECOMPUTED, ON_DELTA = "recomputed", "Spark on the delta"
TOUCHED = "touched group"
STRETCH = "touched stretch"
FOLLOWED = "as time passes"
SOURCES = {**TABLES, "e": parse_ddl("at TIMESTAMP, k BIGINT, v BIGINT"), "n": parse_ddl("k BIGINT, xs ARRAY<BIGINT>")}


@dataclass(frozen=True)
class Construct:
    """A construct and an example of it.

    Attributes:
        outcome: how it is maintained without Spark, or the reason why it is refused.
        with_spark: how with a Session, if that is not the same.
    """

    section: str
    name: str
    sql: str
    outcome: str = INCREMENTAL
    with_spark: str | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the outcome is the reason why not."""
        return self.outcome.isupper()

    @property
    def is_kept(self) -> bool:
        """Whether it is maintained, not refused, and by ticks of rows alone."""
        return self.outcome in (INCREMENTAL, STRETCH, TOUCHED)


def outcome(sql: str) -> str:
    """How the compiler maintains a view: by the delta, by touched stretch or group, or the reason why not."""
    try:
        circuit = compile_views({**SOURCES, CLOCK: CLOCK_SCHEMA}, {"view": sql}).circuit
    except NotIncremental as refusal:
        return refusal.reason
    if any(isinstance(node.operator, Clocked) for node in circuit.nodes):
        return FOLLOWED
    operators = [node.operator for node in circuit.nodes]
    extents = {one.extent for one in operators if isinstance(one, Window)}
    touched = any(
        isinstance(one, SessionWindow) or (isinstance(one, Aggregate) and one.recomputes) for one in operators
    )
    if touched or Extent.WHOLE in extents:
        return TOUCHED
    return STRETCH if Extent.STRETCH in extents else INCREMENTAL


def _section(section: str, *rows: tuple[str, ...]) -> list[Construct]:
    return [Construct(section, *row) for row in rows]


CONSTRUCTS = [
    *_section(
        "SELECT",
        ("projection, arithmetic, CASE", "SELECT k, CASE WHEN v > 0 THEN v * 2 ELSE -v END AS x FROM t"),
        ("WHERE with NULL logic", "SELECT k FROM t WHERE v > 0 OR s IS NULL"),
        (
            "CAST, TRY_CAST, COALESCE",
            "SELECT CAST(v AS STRING) AS a, TRY_CAST(s AS INT) AS b, COALESCE(v, 0) AS c FROM t",
        ),
        (
            "regular expressions that RE2 reads as Java does",
            "SELECT regexp_extract(s, '^([a-z]+)', 1) AS x FROM t WHERE s RLIKE '^[a-m]' OR s LIKE '%n_'",
        ),
        ("DISTINCT", "SELECT DISTINCT k, s FROM t"),
        ("VALUES", "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS x(k, s)"),
        ("CTE", "WITH x AS (SELECT k, v FROM t WHERE v > 0) SELECT k, COUNT(*) AS n FROM x GROUP BY k"),
        (
            "recursive CTE, UNION ALL",
            """
            WITH RECURSIVE r(k, d) AS (SELECT k, 0 FROM u UNION ALL SELECT k, d + 1 FROM r WHERE d < 2)
            SELECT k, d FROM r
        """,
        ),
        ("explode, LATERAL VIEW", "SELECT k, x FROM n LATERAL VIEW explode(xs) y AS x"),
        ("posexplode, outer", "SELECT k, p, x FROM n LATERAL VIEW OUTER posexplode(xs) y AS p, x"),
        ("inline, stack", "SELECT k, x FROM t LATERAL VIEW stack(2, k, v) y AS x"),
        (
            "table functions in FROM: range, explode, posexplode, inline, stack",
            "SELECT t.k, id FROM t JOIN range(1, 4) ON t.v = id",
        ),
        ("TABLE", "TABLE u"),
        ("array, struct and map access", "SELECT k, xs[0] AS first, size(xs) AS n FROM n"),
    ),
    *_section(
        "Joins",
        ("inner", "SELECT t.k, v, w FROM t JOIN u ON t.k = u.k"),
        ("left, with a residual condition", "SELECT t.k, v, w FROM t LEFT JOIN u ON t.k = u.k AND v < w"),
        ("right", "SELECT u.k, v, w FROM t RIGHT JOIN u ON t.k = u.k"),
        ("full", "SELECT t.k, v, w FROM t FULL JOIN u ON t.k = u.k"),
        ("cross", "SELECT v, w FROM t CROSS JOIN u"),
        (
            "semi, anti",
            "SELECT k FROM t LEFT SEMI JOIN u ON t.k = u.k UNION ALL SELECT k FROM t LEFT ANTI JOIN u ON t.k = u.k",
        ),
        ("self", "SELECT a.v, b.v AS w FROM t a JOIN t b ON a.k = b.k"),
        ("n-way", "SELECT a.v, u.w, b.s FROM t a JOIN u ON a.k = u.k JOIN t b ON u.w = b.v"),
        ("without equality", "SELECT v, w FROM t JOIN u ON v < w"),
        ("LATERAL, of a function", "SELECT k, x FROM n, LATERAL explode(xs) AS y(x)"),
        (
            "LATERAL, of an aggregate",
            "SELECT t.k, v, m FROM t LEFT JOIN LATERAL (SELECT MAX(w) AS m FROM u WHERE u.k = t.k) ON true",
        ),
        (
            "LATERAL, of the first rows",
            "SELECT t.k, v, x.w FROM t, LATERAL (SELECT w FROM u WHERE u.k = t.k ORDER BY w DESC LIMIT 2) x",
        ),
    ),
    *_section(
        "Subqueries",
        ("IN", "SELECT k FROM t WHERE k IN (SELECT k FROM u)"),
        ("NOT IN", "SELECT k FROM t WHERE v NOT IN (SELECT w FROM u)"),
        ("EXISTS, NOT EXISTS", "SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"),
        ("scalar", "SELECT k FROM t WHERE v > (SELECT AVG(w) FROM u)"),
        ("correlated scalar", "SELECT k, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS n FROM t"),
        ("of several columns", "SELECT k FROM t WHERE (k, v) IN (SELECT k, w FROM u)"),
        ("in ON", "SELECT t.k, v, w FROM t LEFT JOIN u ON t.k = u.k AND EXISTS (SELECT 1 FROM t o WHERE o.v = u.w)"),
        ("in HAVING", "SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING k IN (SELECT k FROM u)"),
        ("in an aggregate", "SELECT SUM(CASE WHEN v IN (SELECT w FROM u) THEN 1 ELSE 0 END) AS n FROM t"),
    ),
    *_section(
        "Aggregates",
        ("COUNT, SUM, AVG", "SELECT k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, AVG(v) AS a FROM t GROUP BY k"),
        ("MIN, MAX", "SELECT k, MIN(v) AS low, MAX(s) AS high FROM t GROUP BY k"),
        (
            "min_by, max_by",
            "SELECT k, min_by(s, v) AS a FROM (SELECT DISTINCT k, v, MAX(s) AS s FROM t GROUP BY k, v) GROUP BY k",
        ),
        ("STDDEV, VARIANCE", "SELECT k, stddev_samp(v) AS s, var_pop(v) AS p FROM t GROUP BY k"),
        ("BOOL_AND, BOOL_OR", "SELECT k, bool_and(v > 0) AS a, bool_or(v > 0) AS o FROM t GROUP BY k"),
        ("COUNT(DISTINCT), SUM(DISTINCT)", "SELECT k, COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS s FROM t GROUP BY k"),
        ("FILTER", "SELECT k, COUNT(*) FILTER (WHERE v > 0) AS n FROM t GROUP BY k"),
        ("HAVING", "SELECT k, SUM(v) AS s FROM t GROUP BY k HAVING COUNT(*) > 1"),
        ("without GROUP BY", "SELECT COUNT(*) AS n, SUM(v) AS s FROM t"),
        ("GROUPING SETS, ROLLUP, CUBE", "SELECT k, s, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, s)"),
        ("collect_list, collect_set", "SELECT k, sort_array(collect_list(v)) AS l FROM t GROUP BY k", TOUCHED),
        ("percentile, median", "SELECT k, percentile(v, 0.5) AS p, median(v) AS m FROM t GROUP BY k"),
        ("covariance, correlation", "SELECT k, round(covar_pop(v, length(s)), 6) AS c FROM t GROUP BY k"),
        ("regressions", "SELECT round(regr_slope(v, k), 6) AS s, regr_count(v, k) AS n, regr_avgx(v, k) AS x FROM t"),
        ("skewness, kurtosis", "SELECT k, round(skewness(v), 6) AS s, round(kurtosis(v), 6) AS x FROM t GROUP BY k"),
        ("BIT_AND, BIT_OR, BIT_XOR", "SELECT k, bit_and(v) AS a, bit_or(v) AS o, bit_xor(v) AS x FROM t GROUP BY k"),
        ("mode, where ties are decided", "SELECT k, mode(v, true) AS m FROM t GROUP BY k"),
        (
            "mode, where ties are not decided",
            "SELECT k, mode(v) AS m FROM t GROUP BY k",
            "EXPRESSION_NOT_DETERMINISTIC",
            RECOMPUTED,
        ),
        (
            "listagg, string_agg",
            "SELECT k, listagg(s, ', ') WITHIN GROUP (ORDER BY s) AS l FROM t GROUP BY k",
            TOUCHED,
        ),
        (
            "percentile_cont, percentile_disc",
            "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC) AS p FROM t GROUP BY k",
        ),
        ("percentile(DISTINCT)", "SELECT k, percentile(DISTINCT v, 0.5) AS p FROM t GROUP BY k", TOUCHED),
        (
            "first, last, any_value of a value that the whole group shares",
            "SELECT k, any_value(k + 1) AS a FROM t GROUP BY k",
        ),
        (
            "first, last, any_value",
            "SELECT k, first(v) AS a FROM t GROUP BY k",
            "EXPRESSION_NOT_DETERMINISTIC",
            RECOMPUTED,
        ),
        ("approx_count_distinct", "SELECT approx_count_distinct(v) AS n FROM t", TOUCHED),
        ("bitmaps", "SELECT k, bitmap_construct_agg(abs(v) % 100) AS b FROM t GROUP BY k", TOUCHED),
        ("count_min_sketch of integers", "SELECT count_min_sketch(v, 0.5D, 0.9D, 1) AS c FROM t", TOUCHED),
        ("approx_percentile", "SELECT approx_percentile(v, 0.5) AS p FROM t", "FUNCTION_NOT_PROVEN", RECOMPUTED),
    ),
    *_section(
        "Sets and order",
        ("UNION [ALL]", "SELECT k FROM t UNION SELECT k FROM u"),
        ("INTERSECT [ALL]", "SELECT k FROM t INTERSECT ALL SELECT k FROM u"),
        ("EXCEPT [ALL]", "SELECT k FROM t EXCEPT SELECT k FROM u"),
        ("ORDER BY ... LIMIT", "SELECT k, v, s FROM t ORDER BY v DESC, k, s LIMIT 3"),
        ("OFFSET", "SELECT k, v, s FROM t ORDER BY v, k, s LIMIT 2 OFFSET 1"),
        ("LIMIT of a constant expression", "SELECT k, v, s FROM t ORDER BY v, k, s LIMIT 2 * 2 - 1"),
    ),
    *_section(
        "Rows and columns",
        ("PIVOT", "SELECT * FROM (SELECT k, s, v FROM t) PIVOT (SUM(v) AS v, COUNT(*) AS n FOR s IN ('a', 'b' AS x))"),
        ("UNPIVOT", "SELECT * FROM t UNPIVOT INCLUDE NULLS (x FOR name IN (k, v AS value))"),
    ),
    *_section(
        "Pipes",
        (
            "WHERE, EXTEND, SET, DROP, SELECT",
            "FROM t |> WHERE v > 0 |> EXTEND v + 1 AS w |> SET s = upper(s) |> DROP k",
        ),
        ("AGGREGATE", "FROM t |> AGGREGATE SUM(v) AS total, COUNT(*) AS n GROUP BY k |> WHERE n > 1"),
        ("JOIN, AS", "FROM t |> AS a |> LEFT JOIN u AS b ON a.k = b.k |> SELECT a.k, v, w"),
        ("ORDER BY, LIMIT", "FROM t |> ORDER BY v DESC, k, s |> LIMIT 3 |> SELECT s"),
        ("UNION, EXCEPT, INTERSECT", "FROM t |> SELECT k |> UNION ALL (SELECT k FROM u)"),
    ),
    *_section(
        "Window functions",
        (
            "the first of each partition",
            "SELECT k, v, r FROM (SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r <= 3",
        ),
        ("ranking", "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t", STRETCH),
        ("ranking, as a share", "SELECT k, v, percent_rank() OVER (PARTITION BY k ORDER BY v) AS r FROM t", TOUCHED),
        ("offset", "SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY v) AS b FROM t", STRETCH),
        ("running totals", "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v) AS x FROM t", STRETCH),
        (
            "aggregates, ROWS frame",
            """
            SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v, s ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM t
        """,
            STRETCH,
        ),
        (
            "aggregates, RANGE frame",
            """
            SELECT k, v, COUNT(*) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM t
        """,
            STRETCH,
        ),
    ),
    *_section(
        "Time",
        ("window(), tumbling", "SELECT window.start AS a, COUNT(*) AS n FROM e GROUP BY window(at, '10 minutes')"),
        (
            "window(), sliding",
            "SELECT window.start AS a, COUNT(*) AS n FROM e GROUP BY window(at, '10 minutes', '5 minutes')",
        ),
        (
            "session_window()",
            "SELECT k, session_window.start AS a, COUNT(*) AS n FROM e GROUP BY k, session_window(at, '5 minutes')",
            TOUCHED,
        ),
        ("now() in WHERE", "SELECT k FROM e WHERE at > now() - INTERVAL 1 HOUR", FOLLOWED),
        ("current_date() in conditions", "SELECT k, CAST(at AS DATE) = current_date() AS today FROM e", FOLLOWED),
        ("now() in FILTER", "SELECT k, COUNT(*) FILTER (WHERE at <= now()) AS n FROM e GROUP BY k", FOLLOWED),
        ("now() in HAVING", "SELECT k FROM e GROUP BY k HAVING MAX(at) < now() - INTERVAL 1 DAY", FOLLOWED),
        (
            "now() in ON of an inner join",
            "SELECT a.k FROM e AS a JOIN e AS b ON a.k = b.k AND a.at > now() - INTERVAL 1 HOUR AND a.at < b.at",
            FOLLOWED,
        ),
    ),
    *_section(
        "Refused",
        ("now() elsewhere", "SELECT k, now() AS t FROM e", "EXPRESSION_NOT_DETERMINISTIC", RECOMPUTED),
        ("rand(), uuid()", "SELECT rand() AS r FROM t", "EXPRESSION_NOT_DETERMINISTIC", RECOMPUTED),
        ("TABLESAMPLE", "SELECT k FROM t TABLESAMPLE (10 PERCENT)", "OPERATOR_NOT_INCREMENTALIZABLE", RECOMPUTED),
        ("functions without a proof", "SELECT sentences(s) AS x FROM t", "FUNCTION_NOT_PROVEN", ON_DELTA),
        ("lookaround, back references", "SELECT k FROM t WHERE s RLIKE '(?=a)b'", "FUNCTION_NOT_PROVEN", ON_DELTA),
    ),
]


def document() -> str:
    """The page about what SQL a view may hold."""
    lines = [
        "# SQL for views",
        "",
        "This page lists the SQL that a view may contain, and how the view is then kept up to date. Every line is an",
        "example that the tests compile and compare with Spark; `make docs-sql` writes this page.",
        "",
        "- **incremental**: a tick costs as much as the change, however large the tables are.",
        "- **touched stretch**: rows near a change, or after it in its partition, are computed again as far as the",
        "  change reaches, and those that differ are emitted. A new first row changes all ranks after it, but only one",
        "  `lag`.",
        "- **touched group**: only the groups, partitions or sessions that a change touches are computed again.",
        "- **as time passes**: like incremental. In addition, rows enter and leave as",
        "  [the clock](flows.md#time-passes) advances, at the cost of these rows.",
        f"- **{ON_DELTA}**: Spark evaluates [what Weirflow's kernel cannot](functions-in-views.md), only for the",
        "  rows of the delta.",
        f"- **{RECOMPUTED}**: in mode `auto`, Spark runs the whole query at each tick, and the difference is emitted.",
        "- A code such as `FUNCTION_NOT_PROVEN`: the view is refused. The error has this reason and the place in the",
        "  SQL.",
        "",
        "A separate page has a table of [every function of Spark](functions.md).",
    ]
    for section in dict.fromkeys(one.section for one in CONSTRUCTS):
        lines += [
            "",
            f"## {section}",
            "",
            "| construct | without Spark | with a Session | example |",
            "|---|---|---|---|",
        ]
        for one in CONSTRUCTS:
            if one.section == section:
                example = " ".join(one.sql.split()).replace("|", "\\|")
                without = f"`{one.outcome}`" if one.is_refused else one.outcome
                lines.append(f"| {one.name} | {without} | {one.with_spark or one.outcome} | `{example}` |")
    in_zones = zones.FUNCTIONS.keys() | zoned.FUNCTIONS.keys()
    names = sorted(name for name in FUNCTIONS.keys() - in_zones - VECTORS.keys() if not _is_of_a_mode(name))
    lines += [
        "",
        "## Functions",
        "",
        f"These {len(names)} scalar functions and operators are proven to equal Spark's. Operators, and variants of a",
        "function, have descriptive names here, such as `subtract_dates`:",
        "",
    ]
    lines += [", ".join(f"`{name}`" for name in names[at : at + 8]) + "," for at in range(0, len(names), 8)]
    lines[-1] = lines[-1].removesuffix(",") + "."
    lines += [
        "",
        "The same is true of `try_add`, `try_subtract`, `try_multiply`, `try_divide`, `try_mod`, `try_element_at`,",
        "`try_sum`, `try_avg`, and, without a format, `try_to_date` and `try_to_timestamp`. In a Session without ANSI",
        "mode (`spark.sql.ansi.enabled=false`) all of them are maintained with the meaning that Spark gives them:",
        "integers wrap around, and most other values that do not fit are NULL.",
        "",
        f"Spark does not have {', '.join(f'`{name}`' for name in sorted(VECTORS))} and `{AVERAGE}`. They are",
        "[Weirflow's own](vector-views.md). A Session defines them in Spark, all but the last one with Spark's own",
        "functions.",
        "",
        "Functions of dates and times use the view's time zone, whichever it is: the Session's zone when the view was",
        "registered, or that of `IncrementalFlow(time_zone=...)`. In zones that change their clocks, the gap",
        "of a `session_window` must be shorter than a day.",
    ]
    return "\n".join(lines) + "\n"


def _is_of_a_mode(name: str) -> bool:
    """Whether it has no name in SQL, but is what another function means under some settings."""
    return name.startswith(("legacy_", "wrapping_", "try_")) and name != "try_cast"


class CatalogueTables(RandomTables):
    """Random changes of the tables that the examples read."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        dice = random.Random(seed)
        start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
        self._makers["e"] = lambda: (
            start + dt.timedelta(minutes=dice.randrange(60)),
            self._maybe(0, 2),
            self._maybe(-3, 3),
        )
        self._makers["n"] = lambda: (self._maybe(0, 3), tuple(dice.randrange(5) for _ in range(dice.randrange(1, 4))))
        self.rows |= {"e": [], "n": []}
