import pickle
import traceback

import psycopg
import pytest
from support.hang import HangingEndpoint, dead_port
from support.postgres import PASSWORD

from weirflow.errors import ConfigError, MetadataError
from weirflow.metadata import open_metadata


@pytest.fixture
def metadata(postgres):
    with open_metadata(postgres.make_uri()) as opened:
        yield opened


def drop(metadata, postgres):
    """End the connection behind its back."""
    ((pid,),) = metadata._database.run("SELECT pg_backend_pid()")
    assert postgres.execute(f"SELECT pg_terminate_backend({pid}, 5000)") == [(True,)]


def test_a_dropped_connection_is_made_again(metadata, postgres):
    lease = metadata.acquire("flow", "a", 60)
    for call in (
        lease.renew,
        lambda: metadata.documents.put("a", 1, expected_version=0),
        lambda: metadata.documents.put("a", 2, expected_version=1),
        metadata.alive_nodes,
        lease.release,
        lambda: metadata.acquire("flow", "b", 60),
    ):
        drop(metadata, postgres)
        call()
    assert metadata.documents.get("a").version == 2


def test_a_change_whose_outcome_is_unknown_is_not_sent_again(metadata, postgres, monkeypatch):
    database, send = metadata._database, metadata._database._send

    def send_and_drop(sql, values, *, again):
        if "weirflow_documents" in sql and not again:
            database._connection.execute("SELECT 1")
            postgres.execute(f"SELECT pg_terminate_backend({database._connection.info.backend_pid}, 5000)")
        return send(sql, values, again=again)

    monkeypatch.setattr(database, "_send", send_and_drop)
    with pytest.raises(MetadataError, match="not known whether") as unknown:
        metadata.documents.put("a", 1, expected_version=0)
    assert unknown.value.hint == "read what is there before you try again"
    assert metadata.documents.get("a") is None


def test_a_server_that_is_gone_is_an_error_without_secrets():
    with pytest.raises(MetadataError, match="cannot be reached") as gone:
        open_metadata(f"postgresql://ann:{PASSWORD}@127.0.0.1:{dead_port()}/db")
    assert gone.value.uri.startswith("postgresql://127.0.0.1:")
    assert_no_secret(gone.value)


def test_a_server_that_never_answers_is_given_up():
    with HangingEndpoint() as endpoint, pytest.raises(MetadataError, match="timeout"):
        open_metadata(f"postgresql://ann:{PASSWORD}@127.0.0.1:{endpoint.port}/db?connect_timeout=2")


def test_a_refused_user_is_an_error_without_secrets(postgres):
    with pytest.raises(MetadataError, match='role "nobody" does not exist') as refused:
        open_metadata(postgres.make_uri().replace("//postgres:", "//nobody:"))
    assert_no_secret(refused.value)


def test_a_refused_statement_is_an_error_and_the_connection_goes_on(metadata):
    with pytest.raises(MetadataError, match="refused a statement") as refused:
        metadata._database.run("SELECT nonsense")
    assert_no_secret(refused.value)
    assert metadata.alive_nodes() == ()


def test_a_creation_that_fails_leaves_nothing(metadata):
    with pytest.raises(MetadataError):
        metadata._database.create(["CREATE TABLE half (a TEXT)", "CREATE nonsense"])
    assert not metadata._database.has_table("half")


def test_a_user_who_may_not_create_tables_uses_those_there_are(postgres):
    uri = postgres.make_uri()
    open_metadata(uri).close()
    schema = uri.rpartition("%3D")[2]
    role = f"r{schema}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    postgres.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with open_metadata(uri.replace("//postgres:", f"//{role}:")) as metadata:
        assert metadata.acquire("flow", "a", 60).token == 1
        assert metadata.documents.put("a", 1, expected_version=0) == 1


def test_nothing_that_is_shown_holds_the_password(metadata, caplog):
    lease = metadata.acquire("flow", "a", 60)
    member = metadata.join("n1", "host:1")
    shown = f"{metadata!r} {lease!r} {member!r} {metadata.uri} {metadata._database!r}"
    member.leave()
    assert PASSWORD not in shown + caplog.text


def test_a_bad_number_in_the_uri_is_an_error_without_secrets():
    with pytest.raises((ConfigError, MetadataError)) as refused:
        open_metadata(f"postgresql://ann:{PASSWORD}@host:port/db")
    assert_no_secret(refused.value)


def assert_no_secret(error):
    assert not isinstance(error.__cause__, psycopg.Error)
    assert error.__suppress_context__ or error.__context__ is None
    assert PASSWORD not in "".join(traceback.format_exception(error))
    assert PASSWORD.encode() not in pickle.dumps(error)
