import inspect
import re
import subprocess
import sys

import weirflow

HEAVY = ("pyspark", "py4j", "pyarrow", "pydantic", "numpy", "pandas", "rich", "obstore", "grpc")


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=True)


def import_seconds():
    report = run("-X", "importtime", "-c", "import weirflow").stderr
    total = re.search(r"\|\s+(\d+) \| weirflow$", report, re.MULTILINE)
    return int(total[1]) / 1e6


def test_importing_is_fast():
    # The best of three: other programs may keep the machine busy.
    assert min(import_seconds() for _ in range(3)) < 0.3


def test_importing_loads_nothing_heavy_and_starts_no_thread():
    program = "import sys, threading, weirflow; print(threading.active_count(), *sys.modules)"
    threads, *modules = run("-c", program).stdout.split()
    assert threads == "1"
    assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)


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
