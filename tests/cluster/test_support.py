"""The helpers themselves: real Spark daemons start, work, die and leave nothing behind."""

import json
import signal
import sys
from pathlib import Path

import psutil
import pytest
from support.processes import (
    ChildProcess,
    accepts,
    alive,
    descendants,
    java_children,
    wait_gone,
)

# Prints, per worker folder, the sum of the ids its tasks saw: which worker ran what.
DRIVER = """
import json, os, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()

def where(batches):
    from pyspark import BarrierTaskContext
    BarrierTaskContext.get().barrier()
    for batch in batches:
        worker = os.getcwd().split("/worker-")[1].split("/")[0]
        yield pa.RecordBatch.from_pylist([{"worker": worker, "id": i} for i in batch.column(0).to_pylist()])

import pyarrow as pa
rows = spark.range(0, 10, 1, 2).mapInArrow(where, "worker string, id long", barrier=True).collect()
spark.stop()
print("RESULT", json.dumps(sorted([row.worker, row.id] for row in rows)), flush=True)
"""


@pytest.mark.campaign
def test_a_lost_worker_is_noticed_and_replaced_and_stop_leaves_nothing(mortal_cluster, tmp_path):
    cluster = mortal_cluster
    lost, kept = (at for at, worker in enumerate(cluster.workers) if worker.returncode is None)
    cluster.kill_worker(lost)
    assert cluster.workers[lost].returncode == -signal.SIGKILL
    cluster.master.wait_until(lambda: len(cluster.alive_workers()) == 1, 20.0, "aware of the loss")
    cluster.start_worker()
    cluster.wait_ready()
    rows = run_driver(cluster, tmp_path)
    assert sorted(number for _, number in rows) == list(range(10))
    assert {worker for worker, _ in rows} == {str(kept), str(len(cluster.workers) - 1)}
    processes = {p.pid for p in [cluster.master, *cluster.workers]}
    processes |= {pid for process in processes for pid in descendants(process)}
    assert cluster.workers[kept].pid in alive(processes)
    port = int(cluster.url.rpartition(":")[2])
    folders = [cluster._folder, *(p.log_path.parent for p in [cluster.master, *cluster.workers])]
    cluster.stop()
    assert alive(processes) == set()
    assert not accepts(port)
    assert [folder for folder in folders if folder.exists()] == []


def test_a_child_dies_with_its_parent(tmp_path):
    program = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from support.processes import ChildProcess\n"
        "child = ChildProcess(['sleep', '600'], name='sleeper')\n"
        "print('PID', child.pid, child._own_folder, flush=True)\n"
        "time.sleep(600)\n"
    )
    with ChildProcess([sys.executable, "-c", program], name="parent") as parent:
        parent.wait_until(lambda: "PID" in parent.log, 20.0, "started")
        _, pid, folder = parent.log.split()
        assert alive([int(pid)]) == {int(pid)}
        psutil.Process(parent.pid).kill()
        wait_gone([int(pid)], 5.0)
    Path(folder, "sleeper.log").unlink()
    Path(folder).rmdir()


def test_stop_takes_grandchildren_that_left_the_group():
    program = (
        "import subprocess, os, time\n"
        "child = subprocess.Popen(['sleep', '600'], process_group=0)\n"
        "print('PID', child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with ChildProcess([sys.executable, "-c", program], name="parent") as parent:
        parent.wait_until(lambda: "PID" in parent.log, 20.0, "started")
        grandchild = int(parent.log.split()[1])
        assert descendants(parent.pid) == {grandchild}
        assert java_children(parent.pid) == set()
    assert alive([grandchild, parent.pid]) == set()


def test_a_child_that_ends_early_shows_its_log():
    with (
        ChildProcess([sys.executable, "-c", "import sys; sys.exit('told you')"], name="quitter") as child,
        pytest.raises(AssertionError, match=r"quitter ended with 1 before serving[\s\S]*told you"),
    ):
        child.wait_until(lambda: False, 20.0, "serving")


def test_a_deadline_shows_the_log():
    with ChildProcess(["sh", "-c", "echo still thinking; sleep 600"], name="slow") as child:
        child.wait_until(lambda: "thinking" in child.log, 20.0, "thinking")
        with pytest.raises(AssertionError, match=r"slow: not done within 0.1 s[\s\S]*still thinking"):
            child.wait_until(lambda: False, 0.1, "done")


def run_driver(cluster, folder):
    """Run a plain PySpark program on ``cluster``; returns its [worker, id] rows."""
    script = folder / "driver.py"
    script.write_text(DRIVER)
    conf = {**cluster.driver_conf, "spark.driver.memory": "512m", "spark.cores.max": "2"}
    with ChildProcess(
        [sys.executable, script, json.dumps(conf)],
        name="driver",
        env={"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
    ) as driver:
        code = driver.wait(120.0)
        assert code == 0, driver.log
        result = next(line for line in driver.log.splitlines() if line.startswith("RESULT "))
    return json.loads(result.removeprefix("RESULT "))
