"""What a PySpark DataFrame is planned to do, as text: logical plans, the physical plan, or its stages.

Works alike for classic and Spark Connect DataFrames. Nothing here runs the query. Errors of the query itself,
which Spark Connect finds only now, are PySpark's own; the caller translates them.
"""

from __future__ import annotations

from typing import Any

from weirflow.spark.frames.live_plan import leaf_partition_counts
from weirflow.spark.frames.stages import Stage, cut, render
from weirflow.types import ExplainMode

_ANALYSED = "== Analyzed Logical Plan =="
_PHYSICAL = "== Physical Plan =="


def explain_text(native_df: Any, mode: ExplainMode) -> str:
    """The plan of a DataFrame in the form ``mode`` names, without a final newline."""
    match mode:
        case ExplainMode.LOGICAL:
            plans = _spark_text(native_df, "extended")
            analysed = plans[max(plans.find(_ANALYSED), 0) :]
            return analysed.rpartition(_PHYSICAL)[0].rstrip()
        case ExplainMode.PHYSICAL:
            return _spark_text(native_df, "simple").rstrip()
        case ExplainMode.STAGES:
            return explain_stages(native_df)


def explain_stages(native_df: Any) -> str:
    """The physical plan cut into stages, one block each; see ``weirflow.spark.frames.stages``.

    On Spark Connect only the text of the plan can be had: the partitions of stages that read files or tables
    are shown as ``?``.
    """
    return render(plan_stages(native_df))


def plan_stages(native_df: Any) -> tuple[Stage, ...]:
    """The stages that ``explain_stages`` prints."""
    return cut(_spark_text(native_df, "simple"), leaf_partition_counts(native_df))


def _spark_text(native_df: Any, mode: str) -> str:
    if type(native_df).__module__.startswith("pyspark.sql.connect"):
        return str(native_df._explain_string(mode=mode))  # noqa: SLF001  PySpark's explain() only prints
    execution = native_df._jdf.queryExecution()  # noqa: SLF001  as above
    jvm = native_df.sparkSession.sparkContext._jvm  # noqa: SLF001  as above
    return str(jvm.PythonSQLUtils.explainString(execution, mode))
