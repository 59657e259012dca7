"""A driver of the shop's flow on a Spark cluster, to be killed: ``partitioned_driver.py MASTER FOLDER``.

It ticks, from where the flow is, until there is a file ``stop``.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from support import partitioned_shop

from weirflow import Session

MOST_TICKS = 10_000


def main(master: str, folder: Path) -> None:
    logging.basicConfig(level=logging.WARNING)
    with Session.distributed(
        master,
        connect_timeout=60.0,
        driver_memory="512m",
        spark_conf={"spark.executor.memory": "512m", "spark.executor.cores": "1"},
    ) as session:
        flow = session.flow(
            "shop",
            partitions=partitioned_shop.SHARDS,
            path=folder / "shop",
            metadata=str(folder / "metadata.db"),
            lease_seconds=3.0,
            wait=60.0,
        )
        with flow:
            for _ in partitioned_shop.run(flow, MOST_TICKS, folder / "told", recomputed=None):
                if (folder / "stop").exists():
                    break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
