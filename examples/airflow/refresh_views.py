"""A DAG of Airflow that keeps the materialized views of a schema fresh; put it into Airflow's folder of DAGs.

Each run is one Spark application and refreshes what is behind, each view behind those that it reads. The command exits
with 1 if a view is not up to date. What was refreshed stays, so that a retry goes on with the rest.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator  # type: ignore[import-not-found]
from airflow.sdk import DAG  # type: ignore[import-not-found]

COMMAND = "weirflow refresh --all --schema lake.gold -p iceberg --json"

with DAG(
    dag_id="refresh_gold",
    schedule="*/10 * * * *",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 - Airflow reads it in its own time zone
    catchup=False,
    max_active_runs=1,  # two refreshes of one view at a time would be refused
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    BashOperator(task_id="refresh", bash_command=COMMAND, append_env=True)
