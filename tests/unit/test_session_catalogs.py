"""A Session's catalogs without Spark: settings, what is kept by a durable Session, and where secrets stay."""

import json
import threading

import pytest

from weirflow import Session
from weirflow.cli.settings import shown_settings
from weirflow.config import load_settings
from weirflow.errors import AlreadyExists, CatalogNotFound, ConfigError, EndpointUnreachable, UnsupportedError
from weirflow.session.catalogs import CatalogInfo, SessionCatalogs
from weirflow.session.session import _shorten
from weirflow.spark.catalogs.snapshots import require_snapshots
from weirflow.sql.statements.catalogs import read_catalog_statement

CANARY = "canary-7f3a9c"
REST = "iceberg-rest+https://host/api"


class Attached:
    """Remembers what is attached, in place of a Spark session."""

    def __init__(self):
        self.names_there = []
        self.fails = False

    def attach(self, catalog):
        catalog.conf(1.0)
        self.names_there.append(catalog.name)

    def attach_tried(self, catalog):
        if self.fails:
            raise EndpointUnreachable("nothing answers")
        self.attach(catalog)

    def detach(self, catalog):
        self.names_there.remove(catalog.name)

    def names(self):
        return ["spark_catalog", "iceberg", *self.names_there]


@pytest.fixture
def attached():
    return Attached()


def opened(attached, store=None, **settings):
    catalogs = SessionCatalogs(load_settings(catalogs=settings).catalogs, store, lambda: attached, threading.RLock())
    catalogs.attach_all(attached)
    return catalogs


def test_catalogs_come_from_the_environment(monkeypatch):
    text = json.dumps({"lake": REST, "other": {"address": "iceberg-glue", "warehouse": "s3://b/x"}})
    monkeypatch.setenv("WEIRFLOW_CATALOGS", text)
    info = Session.embedded().describe()
    assert info.catalogs == (
        CatalogInfo("lake", "iceberg-rest", REST),
        CatalogInfo("other", "iceberg-glue", "iceberg-glue"),
    )
    assert info.packages == ("iceberg", "iceberg-aws")
    assert f"catalogs     lake ({REST}), other (iceberg-glue)" in str(info)


def test_a_spark_connect_server_has_its_own_packages():
    session = Session.distributed("sc://host:1", catalogs={"lake": REST})
    assert (session.describe().packages, len(session.describe().catalogs)) == ((), 1)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("iceberg-rst+https://host", "No kind of catalog is called 'iceberg-rst'"),
        ({"token": CANARY}, "has options and no address"),
        ({"address": REST, "tokn": CANARY}, "no option 'tokn'"),
        ({"address": {"token": CANARY}}, "catalogs.lake"),
        (5, "catalogs.lake"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_starts(setting, says):
    with pytest.raises(ConfigError, match=says) as caught:
        Session.embedded(catalogs={"lake": setting})
    assert CANARY not in f"{caught.value} {vars(caught.value)}"


def test_no_secret_is_shown():
    session = Session.embedded(catalogs={"lake": {"address": REST, "token": CANARY}})
    info = session.describe()
    shown = f"{session!r} {info} {info!r} {session.settings!r} {session.settings} {session.settings.model_dump_json()}"
    assert CANARY not in shown


def test_commands_and_lists_of_what_runs_show_no_secret():
    settings = load_settings(catalogs={"lake": {"address": REST, "token": CANARY}, "other": f"{REST}?scope={CANARY}"})
    row = next(row for row in shown_settings(settings) if row.name == "catalogs")
    assert row.value == "lake=address=***, token=***, other=***"
    assert _shorten(f"CREATE CATALOG lake USING x WITH (token = '{CANARY}')") == "CREATE CATALOG lake USING x"


def test_a_catalog_that_does_not_answer_leaves_nothing(attached):
    catalogs = opened(attached)
    attached.fails = True
    with pytest.raises(EndpointUnreachable):
        catalogs.add("lake", REST, {})
    assert (catalogs.infos(), catalogs.packages, attached.names_there) == ((), (), [])


def test_catalogs_are_created_listed_and_dropped_by_statements(attached):
    catalogs = opened(attached, first=REST)

    def run(sql):
        return catalogs.run(read_catalog_statement(sql)).to_pylist()

    assert run(f"CREATE CATALOG lake USING '{REST}'") == []
    assert run(f"CREATE CATALOG IF NOT EXISTS lake USING '{REST}'") == []
    with pytest.raises(AlreadyExists, match="'lake'"):
        run(f"CREATE CATALOG lake USING '{REST}'")
    assert [row["catalog"] for row in run("SHOW CATALOGS")] == ["first", "iceberg", "lake", "spark_catalog"]
    assert run("SHOW CATALOGS LIKE 'L*|none'") == [{"catalog": "lake", "kind": "iceberg-rest", "address": REST}]
    run("DROP CATALOG lake")
    run("DROP CATALOG IF EXISTS lake")
    with pytest.raises(CatalogNotFound, match="'firts'") as caught:
        run("DROP CATALOG firts")
    assert caught.value.hint == "did you mean 'first'?"
    with pytest.raises(CatalogNotFound):
        run("DROP CATALOG spark_catalog")
    assert attached.names_there == ["first"]


def test_a_durable_session_keeps_what_it_created(attached, tmp_path, monkeypatch):
    monkeypatch.setenv("LAKE_TOKEN", CANARY)
    store = tmp_path / "metadata.db"
    first = opened(attached, store, given=REST)
    first.add("lake", REST, {"token": "env:LAKE_TOKEN", "scope": "all"})
    first.add("gone", REST, {})
    first.drop("gone")

    again = Attached()
    kept = opened(again, store)
    assert (again.names_there, kept.packages) == (["lake"], ("iceberg",))
    kept.drop("lake")
    assert opened(Attached(), store).infos() == ()
    assert CANARY.encode() not in store.read_bytes()


def test_what_the_settings_say_wins_over_what_is_kept(attached, tmp_path):
    opened(attached, tmp_path / "metadata.db").add("lake", REST, {})
    again = opened(Attached(), tmp_path / "metadata.db", lake="iceberg-rest+https://elsewhere")
    assert [info.address for info in again.infos()] == ["iceberg-rest+https://elsewhere"]


def test_a_durable_session_stores_no_secret(attached, tmp_path):
    store = tmp_path / "metadata.db"
    with pytest.raises(UnsupportedError, match="stores no secrets such as the token of 'lake'") as caught:
        opened(attached, store).add("lake", REST, {"token": CANARY})
    assert "env:VARIABLE" in caught.value.hint
    assert CANARY not in str(caught.value)
    assert attached.names_there == []


def test_a_kept_catalog_whose_secret_is_missing_does_not_keep_the_session_from_opening(
    attached, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("LAKE_TOKEN", CANARY)
    opened(attached, tmp_path / "metadata.db").add("lake", REST, {"token": "env:LAKE_TOKEN"})
    monkeypatch.delenv("LAKE_TOKEN")
    again = Attached()
    opened(again, tmp_path / "metadata.db")
    assert again.names_there == []
    assert "lake is not there" in caplog.text
    with pytest.raises(ConfigError, match="LAKE_TOKEN"):
        opened(Attached(), None, lake={"address": REST, "token": "env:LAKE_TOKEN"})


class Conf(dict):
    """The settings of a Spark session."""

    @property
    def conf(self):
        return self


@pytest.mark.parametrize(
    "settings", [{"type": "nessie"}, {"catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"}, {"type": "rest"}, {}]
)
def test_changes_are_not_read_from_a_catalog_that_shows_one_snapshot(settings):
    native = Conf({f"spark.sql.catalog.lake.{name}": value for name, value in settings.items()})
    if not any("nessie" in value for value in settings.values()):
        require_snapshots(native, "lake")
        return
    with pytest.raises(UnsupportedError, match="'lake' is Nessie's, which shows only the newest snapshot"):
        require_snapshots(native, "lake")
