import sys

import pytest

from weirflow.config import load_settings
from weirflow.errors import ConfigError, PathNotFound, UserCodeError
from weirflow.streaming.detached.order import JobOrder, default_name

FILE = """
import beside
LIMIT = 3

def orders(session):
    return session, beside.VALUE, LIMIT

class Jobs:
    @staticmethod
    def late(session):
        return "late"
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "jobs.py").write_text(FILE)
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    (tmp_path / "broken.py").write_text("import beside, not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("beside", "jobs", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def sent(function, **settings):
    return JobOrder.from_bytes(JobOrder.to_run(function, load_settings(**settings)).to_bytes())


def test_a_function_arrives_with_what_it_holds():
    factor = 3
    assert sent(lambda n: factor * n).loaded()(2) == 6


@pytest.mark.parametrize("text", ["jobs.py:orders", "./jobs.py:orders", "jobs:orders"])
def test_a_function_is_found_where_the_text_says(files, text):
    assert default_name(text) == "orders"
    assert sent(text).loaded()("session") == ("session", 7, 3)
    sys.modules.pop("beside")


def test_a_function_may_be_inside_a_class(files):
    assert default_name("jobs.py:Jobs.late") == "late"
    assert sent("jobs.py:Jobs.late").loaded()(None) == "late"


@pytest.mark.parametrize(
    "text", ["", "orders", ":orders", "jobs.py:", "jobs.py", "jobs.py:a b", "jobs.py:1x", "jobs:a..b"]
)
def test_a_text_that_says_nothing_is_refused(files, text):
    with pytest.raises(ConfigError, match="does not say where a function is") as raised:
        sent(text)
    assert raised.value.hint == "write file.py:function or module:function"


@pytest.mark.parametrize(
    ("text", "error", "said", "hint"),
    [
        ("jbos.py:orders", PathNotFound, "There is no file jbos.py.", "did you mean 'jobs.py'"),
        ("no/jobs.py:orders", PathNotFound, "There is no file no/jobs.py.", "has none"),
        ("jobs.py:ordres", ConfigError, "jobs.py has no 'ordres'.", "did you mean 'orders'?"),
        ("jobs.py:zzz", ConfigError, "jobs.py has no 'zzz'.", "it has orders, Jobs"),
        ("jobs.py:LIMIT", ConfigError, "jobs.py:LIMIT is no function, it is 3.", "takes a Session"),
        ("absent.x:orders", ConfigError, "There is no module 'absent'.", "nor installed"),
    ],
)
def test_what_is_not_there_is_named(files, text, error, said, hint):
    with pytest.raises(error) as raised:
        sent(text).loaded()
    assert raised.value.message == said
    assert hint in raised.value.hint


@pytest.mark.parametrize("text", ["broken.py:orders", "broken:orders"])
def test_a_module_that_cannot_be_imported_shows_where(files, text):
    with pytest.raises(
        UserCodeError, match="cannot be loaded: ModuleNotFoundError: No module named 'not_there'"
    ) as raised:
        sent(text).loaded()
    assert 'broken.py", line 1' in raised.value.message


def test_a_function_that_holds_what_cannot_be_copied_is_refused():
    with pytest.raises(ConfigError, match="cannot be sent to another process") as raised:
        sent(_holding())
    assert "the Session that it is called with" in raised.value.hint


def _holding():
    frame = sys._getframe()
    return lambda _: frame


def test_settings_travel_whole_and_what_was_not_set_stays_unset(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_TOKEN", "secret")
    order = sent(len, placement="distributed", endpoint="sc://h:1", progress="on")
    assert order.settings.keys() == {"placement", "endpoint", "token", "progress"}
    assert order.settings["token"].get_secret_value() == "secret"
    assert order.settings["progress"] == "off"
    assert "sc://h:1" not in repr(order)
