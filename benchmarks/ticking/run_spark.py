"""Spark: the query over cached tables on two cores of plain PySpark, recomputed at every tick."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession

from ticking.child import Recomputing, Scenario, serve


class Spark(Recomputing):
    """One session; the base is cached once for each size."""

    version = pyspark.__version__

    def __init__(self) -> None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "4g")
        self.spark = (
            builder.config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false").getOrCreate()
        )
        self.loaded: int | None = None

    def open(self, scenario: Scenario) -> None:
        """Cache the base in memory, through Parquet files."""
        self.sql = scenario.view.sql
        if self.loaded != scenario.rows:
            self.spark.catalog.clearCache()
            folder = Path(mkdtemp(dir=scenario.facts.parent))
            for name, batch in zip(("facts", "dims"), scenario.base(), strict=True):
                pq.write_table(pa.table(batch), folder / name, row_group_size=1 << 17)
                frame = self.spark.read.parquet(str(folder / name)).repartition(2).cache()
                frame.count()
                frame.createOrReplaceTempView(name)
            self.loaded = scenario.rows

    def view(self) -> pa.Table:
        """The query's rows."""
        return self.spark.sql(self.sql).toArrow()


if __name__ == "__main__":
    serve(Spark)
