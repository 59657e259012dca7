"""Tokens, callers and the gate: who is who, and what they may do."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey

from weirflow.errors import AuthenticationFailed, ConfigError, NotAllowed, ServerBusy
from weirflow.metadata import open_metadata
from weirflow.server.access.audit import AuditLog, statement_shape
from weirflow.server.access.caller import Caller, Right, Role
from weirflow.server.access.gate import Gate, is_loopback
from weirflow.server.access.jwt import JwtIssuer
from weirflow.server.access.limits import Limits, Slots
from weirflow.server.access.tokens import Tokens

ISSUER = "https://login.example"


@pytest.fixture
def store(tmp_path):
    with open_metadata(tmp_path / "metadata.db") as opened:
        yield opened


def test_a_token_is_known_by_its_hash_alone(store, tmp_path):
    info, token = Tokens(store).create("ann", Role.WRITER, flows=("shop", "sales_*"))
    caller = Tokens(store).caller(token, "127.0.0.1:5")
    assert (caller.name, caller.role, caller.flows, caller.token_id) == (
        "ann",
        Role.WRITER,
        ("shop", "sales_*"),
        info.id,
    )
    secret = token.partition("_")[2].partition("_")[2]
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    "change", ["", "x", "wf_", "wf_0_0", "wf__", "bearer", "wf_ID_", "wf_ID_x", "é" * 100, "a" * 10_000]
)
def test_what_is_no_token_is_refused_in_one_sentence(store, change):
    info, _ = Tokens(store).create("ann", Role.READER)
    with pytest.raises(AuthenticationFailed, match="does not know this token"):
        Tokens(store).caller(change.replace("ID", info.id), "")


def test_a_revoked_token_is_refused_at_once_here_and_soon_elsewhere(store, monkeypatch):
    tokens, elsewhere = Tokens(store), Tokens(store)
    info, token = tokens.create("ann", Role.READER)
    assert elsewhere.caller(token, "").name == "ann"
    tokens.revoke(info.id)
    with pytest.raises(AuthenticationFailed):
        tokens.caller(token, "")
    later = time.monotonic() + 3
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(AuthenticationFailed):
        elsewhere.caller(token, "")
    with pytest.raises(ConfigError, match="No token has the id"):
        tokens.revoke(info.id)


def test_an_expired_token_is_refused(store):
    _, token = Tokens(store).create("ann", Role.READER, lifetime=timedelta(microseconds=1))
    with pytest.raises(AuthenticationFailed, match="expired"):
        Tokens(store).caller(token, "")


def test_an_admin_is_for_everything(store):
    with pytest.raises(ConfigError, match="admin"):
        Tokens(store).create("ann", Role.ADMIN, flows=("shop",))


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        (Role.READER, {Right.READ}),
        (Role.WRITER, {Right.READ, Right.WRITE}),
        (Role.OPERATOR, {Right.READ, Right.WRITE, Right.OPERATE}),
        (Role.ADMIN, {Right.READ, Right.WRITE, Right.OPERATE, Right.ADMIN}),
    ],
)
def test_a_role_has_the_rights_of_those_before_it(role, rights):
    assert {right for right in Right if role.has(right)} == rights


@pytest.mark.parametrize(
    ("patterns", "name", "sees"),
    [
        (("*",), "anything", True),
        (("shop",), "shop", True),
        (("shop",), "SHOP", True),
        (("shop",), "shop2", False),
        (("sales_*",), "sales_eu", True),
        (("sales_*",), "sales", False),
        ((), "shop", False),
    ],
)
def test_a_token_is_for_flows(patterns, name, sees):
    caller = Caller("ann", Role.ADMIN, flows=patterns)
    assert caller.sees_flow(name) is sees
    if not sees:
        with pytest.raises(NotAllowed):
            caller.require(Right.READ, "read", flow=name)


@pytest.mark.parametrize(
    ("peer", "loopback"),
    [
        ("127.0.0.1:5", True),
        ("127.9.9.9", True),
        ("ipv4:127.0.0.1:5", True),
        ("ipv6:%5B::1%5D:5", True),
        ("[::1]:5", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1:5", False),
        ("ipv4:192.0.2.1:127", False),
        ("localhost.evil.example", False),
        ("unix:/tmp/socket", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_only_this_machine_needs_no_token(store, peer, loopback):
    assert is_loopback(peer) is loopback
    gate = Gate(Tokens(store), insecure=True)
    if loopback:
        assert gate.caller(None, peer).role is Role.ADMIN
    else:
        with pytest.raises(AuthenticationFailed):
            gate.caller(None, peer)
    with pytest.raises(AuthenticationFailed):
        Gate(Tokens(store)).caller(None, peer)
    with pytest.raises(AuthenticationFailed):  # a wrong token is wrong, wherever it comes from
        gate.caller("wf_0_0", peer)


# JWTs


@pytest.fixture
def key():
    return ECKey.generate_key("P-256", {"kid": "one"})


@pytest.fixture
def issuer(tmp_path, key):
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    return JwtIssuer(ISSUER, str(file), audience="weirflow")


def _claims(**changed):
    claims = {"iss": ISSUER, "aud": "weirflow", "sub": "ann", "exp": int(time.time()) + 60}
    return {**claims, "weirflow": {"role": "writer", "flows": ["shop"]}, **changed}


def _signed(key, claims, **header):
    return jwt.encode({"alg": "ES256", "kid": "one", **header}, claims, key)


def test_a_jwt_of_the_issuer_names_a_caller(issuer, key):
    caller = issuer.caller(_signed(key, _claims()), "peer")
    assert (caller.name, caller.role, caller.flows, caller.catalogs) == ("ann", Role.WRITER, ("shop",), ("*",))


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example"},
        {"aud": "others"},
        {"aud": None},
        {"exp": 1},
        {"exp": None},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"weirflow": None},
        {"weirflow": {}},
        {"weirflow": {"role": "god"}},
        {"weirflow": {"role": "reader", "flows": "shop"}},
        {"weirflow": {"role": ["reader"]}},
    ],
)
def test_a_jwt_that_says_something_else_is_refused(issuer, key, changed):
    claims = {name: value for name, value in _claims(**changed).items() if value is not None}
    with pytest.raises(AuthenticationFailed):
        issuer.caller(_signed(key, claims), "peer")


def test_a_jwt_of_somebody_else_is_refused(issuer, key):
    other = ECKey.generate_key("P-256", {"kid": "one"})
    with pytest.raises(AuthenticationFailed):
        issuer.caller(_signed(other, _claims()), "peer")
    good = _signed(key, _claims())
    header, body, _ = good.split(".")
    for bad in (f"{header}.{body}.", f"{header}.{body}", "..", "a.b.c", good[:-4] + "AAAA", good * 1000):
        with pytest.raises(AuthenticationFailed):
            issuer.caller(bad, "peer")


def test_a_public_key_is_no_shared_secret(issuer, key):
    public = json.dumps(KeySet([key]).as_dict(private=False))
    forged = jwt.encode({"alg": "HS256", "kid": "one"}, _claims(), OctKey.import_key(public), algorithms=["HS256"])
    with pytest.raises(AuthenticationFailed):
        issuer.caller(forged, "peer")


def test_keys_are_read_again_when_they_have_changed(tmp_path, key, monkeypatch):
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": []}))
    issuer = JwtIssuer(ISSUER, str(file))
    with pytest.raises(AuthenticationFailed):
        issuer.caller(_signed(key, _claims()), "peer")
    file.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    later = time.monotonic() + 11
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert issuer.caller(_signed(key, _claims()), "peer").name == "ann"


def test_keys_come_over_https():
    with pytest.raises(ConfigError, match="https"):
        JwtIssuer(ISSUER, "http://login.example/keys")


# Limits and the audit log


def test_a_token_has_so_many_requests_at_once():
    slots, ann, bo = Slots(Limits(statements_at_once=1)), Caller("ann", Role.READER), Caller("bo", Role.READER)
    with slots.taken(ann, lasting=False), slots.taken(bo, lasting=False), slots.taken(ann, lasting=True):
        with pytest.raises(ServerBusy) as busy, slots.taken(ann, lasting=False):
            pass
        assert busy.value.retry_after > 0
    with slots.taken(ann, lasting=False):
        pass


@pytest.mark.parametrize(
    ("limit", "wanted", "given"), [(10, None, 10), (10, 5, 5), (10, 50, 10), (None, 5, 5), (None, None, None)]
)
def test_a_statement_has_no_more_time_than_the_limit(limit, wanted, given):
    assert Limits(statement_seconds=limit).seconds(wanted) == given


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("SELECT 1", "SELECT ?"),
        ("SELECT 'it''s' AS x, \"y\"", "SELECT ? ? AS x, ?"),
        ("select a.b from `t u` where x=0x1F and y = 1e5 -- c", "select a.b from `t u` where x = ? and y = ?"),
        ("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 3)", "INSERT INTO t VALUES(?, NULL),(?)"),
        ("CREATE CATALOG l OPTIONS (token 'hunter2')", "CREATE CATALOG l OPTIONS(token ?)"),
        ("SELECT 'not closed hunter2", "SELECT ?"),
        ("", ""),
    ],
)
def test_a_shape_has_no_literal(sql, shape):
    assert statement_shape(sql) == shape


def test_a_shape_is_short_and_quick():
    began = time.process_time()
    assert len(statement_shape("SELECT " + ", ".join(f"a{number}" for number in range(200_000)))) <= 400
    assert len(statement_shape("SELECT " + "1, " * 200_000)) <= 400
    assert time.process_time() - began < 5


def test_the_audit_log_may_be_moved_away(tmp_path):
    file = tmp_path / "server" / "audit.log"
    log = AuditLog(file)
    caller = Caller("ann\n", Role.READER, token_id="1", peer="p")
    log.write(caller, "tick", flow="shop", detail="", code="OK", milliseconds=1.25)
    file.rename(tmp_path / "old.log")
    log.write(caller, "tick", flow=None, detail="orders", code="NOT_ALLOWED", milliseconds=2)
    old, new = json.loads((tmp_path / "old.log").read_text()), json.loads(file.read_text())
    assert (old["who"], old["flow"], old["outcome"], old["ms"]) == ("ann\n", "shop", "OK", 1.2)
    assert (new["detail"], new["outcome"], "flow" in new) == ("orders", "NOT_ALLOWED", False)
    assert file.stat().st_mode & 0o077 == 0


def test_a_request_does_not_fail_because_its_line_cannot_be_written(tmp_path, caplog):
    file = tmp_path / "server" / "audit.log"
    log = AuditLog(file)
    file.mkdir()
    log.write(Caller("ann", Role.READER), "tick", flow="shop", detail="", code="OK", milliseconds=1)
    assert '"what": "tick"' in caplog.text


def test_a_token_has_limits_of_its_own(store):
    tokens = Tokens(store)
    _, token = tokens.create("batch", Role.READER, limits={"statements_at_once": 1, "statement_seconds": 7200.0})
    _, usual = tokens.create("board", Role.READER)
    limits = Limits(statement_seconds=60.0, statements_at_once=2)
    own, others = Tokens(store).caller(token, ""), Tokens(store).caller(usual, "")
    assert (limits.of(own).seconds(None), limits.of(own).seconds(9000.0)) == (7200.0, 7200.0)
    assert (limits.of(others).seconds(None), limits.of(own).result_bytes) == (60.0, limits.result_bytes)
    slots = Slots(limits)
    with slots.taken(own, lasting=False), slots.taken(others, lasting=False), slots.taken(others, lasting=False):
        for caller in (own, others):
            with pytest.raises(ServerBusy), slots.taken(caller, lasting=False):
                pass


@pytest.mark.parametrize(
    "limits",
    [{"seconds": 1}, {"result_bytes": 0}, {"message_bytes": 100}, {"result_bytes": 1.5}, {"watches_at_once": True}],
)
def test_a_limit_that_cannot_be(store, limits):
    with pytest.raises(ConfigError):
        Tokens(store).create("ann", Role.READER, limits=limits)
    assert Tokens(store).all() == ()
