import inspect
import subprocess
import sys

import pytest

import weirflow

HEAVY = ("pyspark", "py4j", "pyarrow", "pydantic", "numpy", "pandas", "rich", "obstore", "grpc")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=True)


def test_importing_loads_nothing_heavy_and_starts_no_thread():
    program = "import sys, threading, weirflow; print(threading.active_count(), *sys.modules)"
    threads, *modules = run("-c", program).stdout.split()
    assert threads == "1"
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)
    assert len(modules) < 100  # a bound on time would fail on a busy machine


def test_the_name_of_a_flow_loads_neither_the_compiler_nor_what_only_some_need():
    program = "import sys; from weirflow import IncrementalFlow; print(*sys.modules)"
    modules = run("-c", program).stdout.split()
    unwanted = ("asyncio", "numba", "obstore", "pandas", "prometheus_client", "pydantic", "pyspark", "sqlglot")
    assert {name.partition(".")[0] for name in modules}.isdisjoint(unwanted)
    assert "weirflow.ivm.compiler.program" not in modules
    assert len(modules) < 400


FLOW = """
import sys
from weirflow import IncrementalFlow

flow = IncrementalFlow(path=None if len(sys.argv) < 2 else sys.argv[1])
flow.register_source("orders", "id BIGINT, customer STRING, amount DOUBLE, quantity INT, paid BOOLEAN")
flow.register_source("customers", "customer STRING, region STRING", key="customer")
flow.register_view(
    "totals",
    "SELECT customer, count(*) AS n, sum(quantity) AS q, avg(amount) AS a, max(amount) AS m FROM orders "
    "WHERE paid AND amount > 1 GROUP BY customer",
)
flow.register_view("places", "SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.customer")
flow.register_view("top", "SELECT * FROM orders ORDER BY amount DESC LIMIT 10")
ann = {"id": 1, "customer": "ann", "amount": 3.5, "quantity": 2, "paid": True}
bob = {"id": 2, "customer": None, "amount": 7.5, "quantity": None, "paid": False}
flow.tick({"orders": [ann, bob], "customers": [{"customer": "ann", "region": "north"}]})
assert flow.snapshot("places").to_pylist() == [{"id": 1, "region": "north"}]
assert flow.snapshot("top").num_rows == 2
flow.close()
print(len(sys.modules), *sys.modules)
"""


@pytest.mark.parametrize("durable", [False, True])
def test_the_first_tick_of_a_flow_loads_no_pandas(tmp_path, durable):
    pytest.importorskip("pandas")  # which pyarrow.array imports where it is installed
    count, *modules = run("-c", FLOW, *([str(tmp_path / "flow")] if durable else [])).stdout.split()
    unwanted = ("asyncio", "obstore", "pandas", "pydantic", "pyspark")
    assert {name.partition(".")[0] for name in modules}.isdisjoint(unwanted)
    assert int(count) < 1000


def test_a_star_brings_all_public_names():
    program = "from weirflow import *; import weirflow; print(sorted(set(weirflow.__all__) - set(dir())))"
    assert run("-c", program).stdout.strip() == "[]"


def test_what_is_loaded_late_can_be_pickled_and_looked_up_by_help():
    program = (
        "import pickle, pydoc, weirflow\n"
        "assert pickle.loads(pickle.dumps(weirflow.IncrementalFlow)) is weirflow.IncrementalFlow\n"
        "assert pickle.loads(pickle.dumps(weirflow.Lateness('at', '1 hour'))) == weirflow.Lateness('at', '1 hour')\n"
        "text = pydoc.render_doc(weirflow, renderer=pydoc.plaintext)\n"
        "print('class IncrementalFlow' in text, 'register_view' in text)"
    )
    assert run("-c", program).stdout.split() == ["True", "True"]


def test_building_a_session_loads_no_pyspark_and_starts_nothing():
    program = (
        "import sys, threading, psutil, weirflow; s = weirflow.Session.embedded(); s.describe(); repr(s); s.close()\n"
        "print(threading.active_count(), len(psutil.Process().children()), 'pyspark' in sys.modules)"
    )
    assert run("-c", program).stdout.split() == ["1", "0", "False"]


def test_public_names_are_sorted_and_resolve():
    assert weirflow.__all__ == sorted(weirflow.__all__)
    assert dir(weirflow) == weirflow.__all__
    for name in weirflow.__all__:
        value = getattr(weirflow, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__
            assert value.__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(weirflow, "Sesion")
