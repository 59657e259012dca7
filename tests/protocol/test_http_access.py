"""Who may do what, over the real doors: routes, roles and flows as a table written by hand, each cell a test."""

from __future__ import annotations

import socket
from contextlib import closing

import adbc_driver_flightsql.dbapi as adbc
import httpx
import pyarrow as pa
import pytest
from support.server import client, eventually, make_token, served_process

from weirflow import RemoteSession, Server
from weirflow.errors import FunctionNotFound, NotAllowed, TableNotFound
from weirflow.ivm.compiler.view import View
from weirflow.server.access.caller import Caller, Role
from weirflow.server.http.routes import ROUTES

ROLES = ("reader", "writer", "operator", "admin")
SCHEMA = "id BIGINT, customer STRING, amount BIGINT"
VIEW = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
ROW = {"id": 1, "customer": "ann", "amount": 1}

# Method, path, body, who may (r, w, o, a: reader, writer, operator, admin), what who may gets.
TABLE = [
    ("GET", "/v1/session", None, "rwoa", 200),
    ("POST", "/v1/sql", {"sql": "SELECT 1 AS one"}, "rwoa", 200),
    ("GET", "/v1/flows", None, "rwoa", 200),
    ("PUT", "/v1/flows/{flow}", {}, "oa", 201),
    ("GET", "/v1/flows/{flow}", None, "rwoa", 200),
    ("GET", "/v1/flows/{flow}/graph", None, "rwoa", 200),
    ("GET", "/v1/flows/{flow}/explain", None, "rwoa", 200),
    ("POST", "/v1/flows/{flow}/query", {"sql": "SELECT * FROM totals"}, "rwoa", 200),
    ("POST", "/v1/flows/{flow}/ticks", {"deltas": {}}, "woa", 200),
    ("POST", "/v1/flows/{flow}/advance", {}, "woa", 200),
    ("POST", "/v1/flows/{flow}/retry", {}, "woa", 409),
    ("POST", "/v1/flows/{flow}/discard", {}, "woa", 200),
    ("POST", "/v1/flows/{flow}/checkpoints", {}, "oa", 201),
    ("GET", "/v1/flows/{flow}/sources", None, "rwoa", 200),
    ("GET", "/v1/flows/{flow}/sources/orders", None, "rwoa", 200),
    ("PUT", "/v1/flows/{flow}/sources/orders", {"schema": SCHEMA}, "oa", 201),
    ("DELETE", "/v1/flows/{flow}/sources/none", None, "oa", 400),
    ("GET", "/v1/flows/{flow}/sources/orders/rows", None, "rwoa", 200),
    ("POST", "/v1/flows/{flow}/sources/orders/ticks", [ROW], "woa", 200),
    ("GET", "/v1/flows/{flow}/views", None, "rwoa", 200),
    ("GET", "/v1/flows/{flow}/views/totals", None, "rwoa", 200),
    ("PUT", "/v1/flows/{flow}/views/totals", {"sql": VIEW}, "oa", 201),
    ("DELETE", "/v1/flows/{flow}/views/none", None, "oa", 404),
    ("POST", "/v1/flows/{flow}/views/totals/refresh", {}, "oa", 200),
    ("GET", "/v1/flows/{flow}/views/totals/rows", None, "rwoa", 200),
    ("GET", "/v1/flows/{flow}/sinks", None, "rwoa", 200),
    ("PUT", "/v1/flows/{flow}/sinks/s", {"view": "totals", "to": "/proc/none"}, "a", 500),
    ("PUT", "/v1/flows/{flow}/sinks/t", {"view": "totals"}, "oa", 400),
    ("DELETE", "/v1/flows/{flow}/sinks/none", None, "oa", 400),
    ("GET", "/v1/operations", None, "rwoa", 200),
    ("POST", "/v1/operations", {"sql": "SELECT 1 AS one"}, "rwoa", 202),
    ("GET", "/v1/operations/none", None, "rwoa", 404),
    ("GET", "/v1/operations/none/result", None, "rwoa", 404),
    ("DELETE", "/v1/operations/none", None, "rwoa", 404),
    ("GET", "/v1/streams", None, "rwoa", 200),
    ("POST", "/v1/streams", {"function": "none.py:none"}, "a", 404),
    ("GET", "/v1/streams/none", None, "rwoa", 404),
    ("POST", "/v1/streams/none/stop", {}, "oa", 404),
    ("POST", "/v1/streams/none/savepoints", {"name": "s"}, "oa", 404),
    ("GET", "/v1/savepoints", None, "rwoa", 200),
    ("DELETE", "/v1/savepoints/none", None, "oa", 204),
    ("GET", "/v1/nodes", None, "rwoa", 200),
    ("POST", "/v1/nodes/none/drain", {}, "oa", 400),
    ("GET", "/v1/leases", None, "rwoa", 200),
    ("POST", "/v1/tickets", None, "rwoa", 201),
    ("GET", "/v1/flows/{flow}/views/none/changes", None, "rwoa", 404),
    ("GET", "/v1/streams/none/progress", None, "rwoa", 404),
]
CELLS = [
    pytest.param(
        row,
        role,
        flow,
        id=f"{row[0]} {row[1]} {role} {flow} {sorted(row[2] or {}) if isinstance(row[2], dict) else ''}",
    )
    for row in TABLE
    for role in ROLES
    for flow in (("shop", "secret") if "{flow}" in row[1] else ("shop",))
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "data"
    tokens = {role: make_token(path, role, f"the {role}", flows=("shop",)) for role in ROLES[:3]}
    tokens["admin"] = tokens["all"] = make_token(path, "admin", "root")
    tokens["lake"] = make_token(path, "reader", "of a lake", catalogs=("lake",))
    tokens["here"] = make_token(path, "writer", "of Spark's own", catalogs=("spark_catalog",))
    with served_process(path, "--cores", "1", environment={"WEIRFLOW_SERVER_RESULT_BYTES": "1000000"}) as served:
        with client(served.http_url, tokens["all"]) as http:
            for flow in ("shop", "secret"):
                assert http.put(f"/v1/flows/{flow}").status_code == 201
                assert http.put(f"/v1/flows/{flow}/sources/orders", json={"schema": SCHEMA}).status_code == 201
                assert http.put(f"/v1/flows/{flow}/views/totals", json={"sql": VIEW}).status_code == 201
                assert http.post(f"/v1/flows/{flow}/sources/orders/ticks", json=[ROW]).status_code == 200
            _run(http, "CREATE TABLE kept (id INT) USING parquet")
            assert _run(http, "CREATE INCREMENTAL VIEW secret.hidden AS SELECT id FROM orders") == "OK"
            assert _run(http, "CREATE OR REPLACE TEMPORARY VIEW over AS SELECT hidden.id FROM hidden") == "OK"
        clients = {name: client(served.http_url, token) for name, token in tokens.items()}
        clients["nobody"] = client(served.http_url)
        yield {**clients, "flight": served.flight_url}
        for one in clients.values():
            one.close()


def _run(http, sql):
    answer = http.post("/v1/sql", json={"sql": sql})
    return "OK" if answer.status_code == 200 else answer.json()["code"]


@pytest.mark.parametrize(("row", "role", "flow"), CELLS)
def test_a_cell(server, row, role, flow):
    method, path, body, allowed, status = row
    answer = server[role].request(method, path.format(flow=flow), json=body)
    if (flow == "secret" and role != "admin") or role[0] not in allowed:
        assert (answer.status_code, answer.json()["code"]) == (403, "NOT_ALLOWED")
    else:
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[1]}")
def test_nobody_gets_in_without_a_token(server, row):
    method, path, body, _, _ = row
    answer = server["nobody"].request(method, path.format(flow="shop"), json=body)
    assert (answer.status_code, answer.json()["code"]) == (401, "AUTHENTICATION_FAILED")
    assert "bearer" in answer.headers["www-authenticate"].lower()


def test_the_table_has_every_route():
    known = {
        (method, path.replace("none", "*").replace("orders", "*").replace("totals", "*")) for method, path, *_ in TABLE
    }
    for route in ROUTES:
        wanted = route.path.replace("{flow}", "{FLOW}")
        for name in ("source", "view", "operation", "stream", "savepoint", "node:path", "stream:path"):
            wanted = wanted.replace(f"{{{name}}}", "*")
        wanted = wanted.replace("{FLOW}", "{flow}")
        options = {
            (route.method, wanted),
            (route.method, wanted.replace("{sink}", "s")),
            (route.method, wanted.replace("{sink}", "*")),
        }
        assert options & known, route


def test_metrics_are_for_those_who_may_see_all_flows(server):
    assert server["reader"].get("/metrics").status_code == 403
    assert "weirflow_server_requests_total" in server["all"].get("/metrics").text


# A statement, and the least role that may run it; "nobody" is for what a server does not do at all.
STATEMENTS = [
    ("SELECT 1 AS one", "reader"),
    ("SELECT * FROM shop.totals", "reader"),
    ("SELECT o.id, t.total FROM shop.orders o JOIN shop.totals t ON o.customer = t.customer", "reader"),
    ("WITH x AS (SELECT id FROM shop.orders) SELECT max(id) AS m FROM x WHERE id IN (SELECT id FROM x)", "reader"),
    ("SELECT id, row_number() OVER (ORDER BY id) AS r FROM shop.orders ORDER BY id LIMIT 2", "reader"),
    ("SELECT customer, count(DISTINCT id) AS n FROM shop.orders GROUP BY CUBE (customer)", "reader"),
    ("SELECT explode(array(1, 2)) AS x UNION ALL SELECT 3", "reader"),
    ("SELECT * FROM VALUES (1, 2), (3, 4) AS t(a, b) PIVOT (sum(b) FOR a IN (1, 3))", "reader"),
    ("SELECT * FROM kept TABLESAMPLE (50 PERCENT)", "reader"),
    ("SELECT * FROM kept", "reader"),
    ("VALUES (1)", "reader"),
    ("SELECT * FROM IDENTIFIER('kept')", "reader"),
    ("FROM kept |> WHERE id > 0 |> AGGREGATE count(*) AS n", "reader"),
    ("SELECT id, rank() OVER w AS r FROM shop.orders WINDOW w AS (ORDER BY id)", "reader"),
    ("SELECT from_xml('<a><b>1</b></a>', 'b INT') AS x", "reader"),
    ("SELECT IDENTIFIER('abs')(1) AS x", "admin"),
    ("EXPLAIN SELECT from_xml('<a/>', 'b INT', map('mode', 'PERMISSIVE')) AS x", "admin"),
    ("SHOW SOURCES IN shop", "reader"),
    ("DESCRIBE shop.orders", "reader"),
    ("DESCRIBE TABLE kept", "reader"),
    ("EXPLAIN SELECT 1", "reader"),
    ("EXPLAIN SHOW COLUMNS IN kept", "reader"),
    ("EXPLAIN INSERT INTO kept VALUES (1)", "writer"),
    ("EXPLAIN MERGE INTO kept USING kept AS n ON false WHEN MATCHED THEN DELETE", "writer"),
    ("EXPLAIN SET", "admin"),
    ("EXPLAIN ADD JAR '/not/there.jar'", "admin"),
    ("EXPLAIN DROP TABLE kept", "admin"),
    ("EXPLAIN EXECUTE IMMEDIATE 'SELECT 1'", "admin"),
    ("EXPLAIN EXTENDED EXECUTE IMMEDIATE 'SET a.b = 1'", "admin"),
    ("SELECT ' WITH (' AS x FROM kept -- WITH (", "reader"),
    ("WITH/**/w(id) AS (SELECT id FROM kept) SELECT id FROM w", "reader"),
    ("SELECT * FROM kept WITH (path = '/etc')", "admin"),
    ("SELECT max(id) AS m FROM kept WHERE id IN (SELECT id FROM kept with/* /* */ */\u00a0(a = 'b'))", "admin"),
    ("INSERT INTO kept WITH (path = '/tmp') VALUES (1)", "admin"),
    ("EXPLAIN SELECT * FROM kept WITH (path = '/etc')", "admin"),
    ("EXPLAIN INCREMENTAL SELECT id FROM shop.orders", "reader"),
    ("SHOW CATALOGS", "reader"),
    ("INSERT INTO shop.orders VALUES (7, 'bo', 1)", "writer"),
    ("INSERT INTO shop.orders SELECT id + 100 AS id, customer, amount FROM shop.orders WHERE id = 7", "writer"),
    ("UPDATE shop.orders SET amount = 2 WHERE id = 7", "writer"),
    ("DELETE FROM shop.orders WHERE id >= 7", "writer"),
    (
        (
            "MERGE INTO shop.orders o USING (SELECT CAST(8 AS BIGINT) AS id) n ON o.id = n.id "
            "WHEN MATCHED THEN UPDATE SET amount = 3"
        ),
        "writer",
    ),
    ("INSERT INTO kept VALUES (1)", "writer"),
    ("CREATE SOURCE IF NOT EXISTS shop.more (id BIGINT)", "operator"),
    ("CREATE OR REPLACE INCREMENTAL VIEW shop.mine AS SELECT id FROM orders", "operator"),
    ("REFRESH INCREMENTAL VIEW shop.totals", "operator"),
    ("DROP INCREMENTAL VIEW IF EXISTS shop.gone", "operator"),
    ("SET spark.sql.shuffle.partitions = 4", "admin"),
    ("SET", "admin"),
    ("RESET spark.sql.shuffle.partitions", "admin"),
    ("CREATE TABLE IF NOT EXISTS files (a INT) USING parquet LOCATION '/tmp/weirflow-not-there'", "admin"),
    ("CREATE OR REPLACE TEMPORARY VIEW w AS SELECT 1 AS one", "admin"),
    ("DROP TABLE IF EXISTS gone", "admin"),
    ("CACHE TABLE kept", "admin"),
    ("USE default", "admin"),
    ("DECLARE OR REPLACE VARIABLE z = 1", "admin"),
    ("EXECUTE IMMEDIATE 'SELECT 1'", "admin"),
    ("BEGIN SELECT 1; END", "admin"),
    ("DROP CATALOG IF EXISTS gone", "admin"),
    ("SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) t(a)", "admin"),
    ("WITH x AS (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) t(a)) SELECT * FROM x", "admin"),
    ("SELECT (SELECT max(b) FROM (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) t(a))) AS m", "admin"),
    ("EXPLAIN SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) t(a)", "admin"),
    (
        "INSERT INTO kept SELECT CAST(b AS INT) FROM (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM VALUES (1) t(a))",
        "admin",
    ),
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("sql", "least"), STATEMENTS)
def test_a_statement_is_for_roles(server, sql, least, role):
    code = _run(server[role], sql)
    if ROLES.index(role) < ROLES.index(least):
        assert code == "NOT_ALLOWED"
    else:
        assert code == "OK"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT reflect('java.lang.System', 'getenv', 'PATH')", "FUNCTION_NOT_FOUND"),
        ("SELECT java_method('java.lang.System', 'getenv', 'PATH')", "FUNCTION_NOT_FOUND"),
        ("SELECT try_reflect('java.lang.System', 'getenv', 'PATH')", "FUNCTION_NOT_FOUND"),
        ("VALUES (reflect('java.lang.System', 'getenv', 'PATH'))", "FUNCTION_NOT_FOUND"),
        ("SELECT * FROM text.`/etc/passwd`", "TABLE_NOT_FOUND"),
        ("SELECT * FROM `parquet`.`/tmp/x`", "TABLE_NOT_FOUND"),
        ("INSERT INTO shop.orders SELECT 1, value, 1 FROM text.`/etc/passwd`", "TABLE_NOT_FOUND"),
    ],
)
def test_a_server_reads_no_paths_and_calls_no_java(server, sql, code, role):
    if role != "admin" and code == "TABLE_NOT_FOUND":
        code = "NOT_ALLOWED"  # what is before the dot may be a flow that the token is not for
    assert _run(server[role], sql) == code


def test_what_is_explained_is_not_run(server):
    _run(server["reader"], "EXPLAIN EXECUTE IMMEDIATE 'CREATE TABLE made (id INT) USING parquet'")
    assert _run(server["all"], "SELECT * FROM made") == "TABLE_NOT_FOUND"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", ["env:PATH", "system:user.home", "spark.app.name", "spark.sql.warehouse.dir"])
def test_a_server_tells_no_variable_of_its_process(server, name, role):
    for sql in (f"SELECT '${{{name}}}' AS x", f"SELECT max(x) AS x FROM VALUES ('${{{name}}}') AS t(x)"):
        assert server[role].post("/v1/sql", json={"sql": sql}).json()["rows"] == [{"x": f"${{{name}}}"}]


@pytest.mark.parametrize("function", ["xpath", "xpath_string", "xpath_boolean"])
def test_a_document_brings_no_other_from_elsewhere(server, function):
    with closing(socket.create_server(("127.0.0.1", 0))) as elsewhere:
        elsewhere.settimeout(0.5)
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/its.dtd"
        document = f'<!DOCTYPE a SYSTEM "{address}"><a><b>1</b></a>'
        assert _run(server["reader"], f"SELECT {function}('{document}', 'a/b') AS x") == "QUERY_FAILED"
        with pytest.raises(TimeoutError):
            elsewhere.accept()
    assert _run(server["reader"], f"SELECT {function}('<a><b>1</b></a>', 'a/b') AS x") == "OK"


@pytest.mark.parametrize("role", ROLES[:3])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM secret.totals",
        "SELECT * FROM shop.orders WHERE id IN (SELECT id FROM secret.orders)",
        "WITH x AS (SELECT * FROM secret.orders) SELECT * FROM x",
        "SHOW SOURCES IN secret",
        "SHOW SOURCES",
        "DESCRIBE secret.orders",
        "EXPLAIN INCREMENTAL SELECT id FROM secret.orders",
        "INSERT INTO secret.orders VALUES (1, 'x', 1)",
        "INSERT INTO shop.orders SELECT * FROM secret.orders",
        "INSERT INTO kept SELECT id FROM secret.orders",
        "CREATE INCREMENTAL VIEW shop.stolen AS SELECT id FROM secret.orders",
        "DROP SOURCE secret.orders",
        "CREATE FLOW secret2",
    ],
)
def test_another_flow_stays_out_of_reach(server, sql, role):
    assert _run(server["all"], "SELECT count(*) AS n FROM secret.orders") == "OK"  # whose tables Spark has now
    assert _run(server[role], sql) == "NOT_ALLOWED"


# Statements that end in what another flow's view has, by its own name and by a temporary view over it.
READINGS = [
    ("reader", "SELECT * FROM {}"),
    ("reader", "SELECT * FROM IDENTIFIER('{}')"),
    ("reader", "SELECT EXISTS (SELECT 1 FROM {}) AS e"),
    ("reader", "FROM {} |> SELECT id"),
    ("reader", "EXPLAIN EXTENDED SELECT * FROM {}"),
    ("reader", "DESCRIBE QUERY SELECT * FROM {}"),
    ("reader", "DESCRIBE TABLE EXTENDED {}"),
    ("reader", "SHOW COLUMNS IN {}"),
    ("writer", "INSERT INTO kept SELECT id FROM {}"),
    ("writer", "INSERT INTO kept WITH x AS (SELECT id FROM {}) SELECT id FROM x"),
    ("writer", "INSERT INTO shop.orders SELECT id, 'x' AS customer, 1 AS amount FROM {}"),
    ("writer", "UPDATE shop.orders SET amount = (SELECT max(id) FROM {})"),
    ("writer", "DELETE FROM shop.orders WHERE id IN (SELECT id FROM {})"),
    ("writer", "MERGE INTO shop.orders o USING {} h ON o.id = h.id WHEN MATCHED THEN DELETE"),
    ("operator", "CREATE INCREMENTAL VIEW shop.stolen AS SELECT id FROM {}"),
    ("operator", "CREATE MATERIALIZED VIEW stolen AS SELECT id FROM {}"),
    ("operator", "ALTER MATERIALIZED VIEW stolen AS SELECT id FROM {}"),
]


@pytest.mark.parametrize("name", ["hidden", "over"])
@pytest.mark.parametrize(("role", "sql"), READINGS)
def test_what_is_of_another_flow_is_not_there(server, role, sql, name):
    assert _run(server["all"], "SELECT hidden.id FROM hidden") == "OK"  # Spark has it now, by its own name
    assert _run(server[role], sql.format(name)) == _run(server[role], sql.format("nothing")) == "TABLE_NOT_FOUND"


@pytest.mark.parametrize(
    ("role", "sql"),
    [
        ("writer", "INSERT INTO kept SELECT id FROM IDENTIFIER('hidden')"),
        ("writer", "INSERT INTO shop.orders SELECT id, 'x', 1 FROM IDENTIFIER('hidden')"),
        ("writer", "INSERT INTO IDENTIFIER('secret.orders') VALUES (1, 'x', 1)"),
        ("writer", "INSERT INTO kept SELECT from_xml('<a/>', 'b INT', map('mode', 'PERMISSIVE')).b"),
        ("operator", "CREATE INCREMENTAL VIEW shop.stolen AS SELECT id FROM IDENTIFIER('over')"),
        (
            "operator",
            (
                "CREATE INCREMENTAL VIEW shop.x AS "
                "SELECT from_xml(customer, 'b INT', map('rowValidationXSDPath', '/dev/null')).b FROM orders"
            ),
        ),
        ("reader", "SELECT from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '/etc/passwd')) AS x"),
        ("reader", "SELECT `builtin`.`From_XML`('<a/>', 'b INT', map('rowValidationXSDPath', '/etc/passwd')) AS x"),
        ("reader", "SELECT from_avro(X'00', '\"int\"', map('avroSchemaUrl', 'file:///etc/passwd')) AS x"),
        ("reader", "SELECT from_protobuf(X'00', 'Message', '/etc/passwd') AS x"),
        ("reader", "SELECT to_protobuf(named_struct('a', 1), 'Message', '/etc/passwd', map('a', 'b')) AS x"),
        ("reader", "SELECT * FROM no_such_flow.totals"),
        ("reader", "SELECT * FROM spark_catalog.default.`../kept`"),
        ("reader", "DESCRIBE TABLE `../kept`"),
        ("reader", "SELECT * FROM `/etc/passwd`"),
        ("writer", 'INSERT INTO `kept" --` VALUES (1)'),
        ("writer", "INSERT INTO kept SELECT id FROM spark_catalog.default.`../kept`"),
        ("operator", "CREATE INCREMENTAL VIEW shop.x AS SELECT id FROM `../kept`"),
        ("operator", "CREATE MATERIALIZED VIEW default.`../kept` AS SELECT 1 AS id"),
        ("operator", "REFRESH MATERIALIZED VIEW `../kept`"),
    ],
)
def test_a_way_around_is_closed(server, role, sql):
    assert _run(server[role], sql) == "NOT_ALLOWED"


def test_a_query_over_a_flow_reads_nothing_else(server):
    for name in ("hidden", "over"):
        answer = server["reader"].post("/v1/flows/shop/query", json={"sql": f"SELECT id FROM {name}"})
        assert (answer.status_code, answer.json()["code"]) == (404, "TABLE_NOT_FOUND")


@pytest.mark.parametrize(
    ("role", "sql"),
    [
        ("reader", "SELECT * FROM spark_catalog.default.hiden"),
        ("reader", "SELECT * FROM IDENTIFIER('hiden')"),
        ("reader", "DESCRIBE SOURCE hiden"),
        ("writer", "INSERT INTO hiden VALUES (1)"),
        ("reader", "SHOW COLUMNS IN hiden"),
    ],
)
def test_no_hint_says_what_others_have(server, role, sql):
    assert _run(server["all"], "SELECT hidden.id FROM hidden") == "OK"
    told = server[role].post("/v1/sql", json={"sql": sql}).json()
    assert (told["code"], told["hint"]) == ("TABLE_NOT_FOUND", None)


@pytest.mark.parametrize(
    ("role", "sql"),
    [
        ("reader", "DESCRIBE SOURCE orders"),
        ("reader", "EXPLAIN INCREMENTAL SELECT id FROM orders"),
        ("writer", "INSERT INTO orders SELECT id + 1000 AS id, customer, amount FROM orders"),
        ("writer", "DELETE FROM orders WHERE id > 1000"),
    ],
)
def test_a_name_that_others_have_too_is_ones_own(server, role, sql):
    assert _run(server[role], sql) == "OK"
    assert _run(server["all"], sql) == "CONFIG_INVALID"  # there are two


CATALOGS = [
    ("SHOW NAMESPACES IN other", "NOT_ALLOWED"),
    ("SHOW TABLES IN other.APP", "NOT_ALLOWED"),
    ("SHOW VIEWS IN other.APP", "NOT_ALLOWED"),
    ("SHOW FUNCTIONS IN other.APP", "NOT_ALLOWED"),
    ("SHOW COLUMNS IN other.APP.things", "NOT_ALLOWED"),
    ("DESCRIBE other.APP.things", "NOT_ALLOWED"),
    ("SELECT * FROM other.APP.things", "NOT_ALLOWED"),
    ("INSERT INTO other.APP.things VALUES (2)", "NOT_ALLOWED"),
    ("EXPLAIN SHOW TABLES IN other.APP", "NOT_ALLOWED"),
    ("SHOW CATALOGS", "NOT_ALLOWED"),
    ("SHOW TABLES IN default", "OK"),
    ("SHOW NAMESPACES", "OK"),
    ("SELECT * FROM kept", "OK"),
]


@pytest.fixture(scope="module")
def other_catalog(server):
    """A catalog beside Spark's own, with a table."""
    for name, value in {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": "jdbc:derby:memory:other;create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }.items():
        assert _run(server["all"], f"SET `spark.sql.catalog.other{name}` = `{value}`") == "OK"
    made = server["all"].post("/v1/sql", json={"sql": "CREATE TABLE other.APP.things (id INT)"})
    assert made.status_code == 200, made.text


@pytest.mark.usefixtures("other_catalog")
@pytest.mark.parametrize(("sql", "code"), CATALOGS)
def test_another_catalog_stays_out_of_reach(server, sql, code):
    assert _run(server["here"], sql) == code


def test_what_is_told_of_the_session_is_of_ones_own_catalogs():
    address = "iceberg-rest+http://127.0.0.1:1"
    with Server({"catalogs": {"mine": address, "other": address}}, http="127.0.0.1:0", insecure=True, warm=False) as it:
        told = it.coordinator.describe(Caller("ann", Role.READER, catalogs=("m*",)))
    assert [one.name for one in told.catalogs] == ["mine"]


@pytest.mark.usefixtures("other_catalog")
def test_an_ingest_goes_into_ones_own_catalogs(server):
    address = server["flight"].removeprefix("weirflow://")
    with (
        adbc.connect(f"grpc://{address}", _bearer(server["here"]), autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(adbc.Error, match="NOT_ALLOWED"),
    ):
        cursor.adbc_ingest("APP.things", pa.table({"id": [1]}), mode="append", db_schema_name="other")


def _bearer(http):
    return {"adbc.flight.sql.authorization_header": http.headers["Authorization"]}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("hidden", "TABLE_NOT_FOUND"),
        ("over", "TABLE_NOT_FOUND"),
        ("nothing", "TABLE_NOT_FOUND"),
        ("secret.totals", "NOT_ALLOWED"),
        ("no_such_flow.totals", "NOT_ALLOWED"),
    ],
)
def test_a_subscription_does_not_tell_what_others_have(server, name, code):
    address = server["flight"].removeprefix("weirflow://")
    with (
        adbc.connect(f"grpc://{address}", _bearer(server["reader"]), autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(adbc.Error, match=code),
    ):
        cursor.execute(f"SUBSCRIBE TO {name}")


@pytest.mark.parametrize("sql", ["SELECT id FROM hidden", "SELECT reflect('a', 'b') AS x FROM orders"])
def test_a_plan_of_views_reads_what_a_query_may(server, sql):
    with _remote(server, "reader") as session:
        backend = session.flow("shop")._backend
        given = {name: backend.sources[name] for name in ("orders",)}
        backend.plan(given, {"mine": View("SELECT id FROM orders"), "its": View("SELECT id FROM mine")})
        with pytest.raises((TableNotFound, NotAllowed, FunctionNotFound)):
            backend.plan(given, {"mine": View(sql)})


def test_a_query_may_read_what_comes_with_it(server):
    with _remote(server, "reader") as session:
        rows = session.flow("shop").sql("SELECT x + 1 AS y FROM mine", tables={"mine": pa.table({"x": [1]})})
        assert rows.to_pylist() == [{"y": 2}]


@pytest.mark.usefixtures("other_catalog")
@pytest.mark.parametrize("table", ["other.APP.`of/a/path`", "IDENTIFIER('other.APP.`of/a/' || 'path`')"])
def test_a_table_that_is_named_as_a_path_is_for_admins(server, table):
    _run(server["all"], "CREATE TABLE other.APP.`of/a/path` (id INT)")
    assert _run(server["all"], f"SELECT * FROM {table}") == "OK"
    assert _run(server["reader"], f"SELECT * FROM {table}") == "NOT_ALLOWED"


def _remote(server, role):
    return RemoteSession(server["flight"], server[role].headers["Authorization"].removeprefix("Bearer "))


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE MATERIALIZED VIEW m",
        "SHOW MATERIALIZED VIEWS",
        "EXPLAIN REFRESH MATERIALIZED VIEW spark_catalog.default.m",
    ],
)
def test_materialized_views_are_of_catalogs(server, sql):
    assert _run(server["lake"], sql) == "NOT_ALLOWED"


def test_what_queries_have_seen_of_a_flow_has_no_back_door(server):
    assert _run(server["all"], "SELECT s.id FROM secret.orders s, shop.orders t") == "OK"
    for number in range(3):
        code = _run(server["operator"], f"SELECT * FROM _weirflow_{number}_orders WHERE id = 1")
        assert code in ("OK", "NOT_ALLOWED", "TABLE_NOT_FOUND")
        if code == "OK":  # it is shop's
            assert _run(server["all"], f"SELECT * FROM _weirflow_{number}_orders") == "OK"
    assert _run(server["operator"], "SHOW TABLES") == "NOT_ALLOWED"


def test_a_token_for_one_catalog_reads_no_other(server):
    assert _run(server["lake"], "SELECT * FROM kept") == "NOT_ALLOWED"
    assert _run(server["lake"], "SELECT 1 AS one") == "OK"


def test_an_operation_is_its_owners(server):
    started = server["writer"].post("/v1/operations", json={"sql": "SELECT 42 AS answer"}).json()["id"]
    assert server["reader"].get(f"/v1/operations/{started}").status_code == 404
    answer = server["writer"].get(f"/v1/operations/{started}/result?wait=60")
    assert answer.json()["rows"] == [{"answer": 42}]
    shown = server["operator"].get(f"/v1/operations/{started}").json()
    assert (shown["state"], shown["description"]) == ("succeeded", "SELECT ? AS answer")


def test_a_statement_has_its_time_and_its_bytes(server):
    endless = "SELECT count(*) AS n FROM range(1000000000000) a WHERE sqrt(id) < 0"
    answer = server["reader"].post("/v1/sql", json={"sql": endless, "timeout": 1})
    assert (answer.status_code, answer.json()["code"]) == (504, "OPERATION_TIMEOUT")
    answer = server["reader"].post("/v1/sql", json={"sql": "SELECT id FROM range(500000)"})
    assert (answer.status_code, answer.json()["code"]) == (413, "RESULT_TOO_LARGE")


def test_what_nobody_waits_for_is_stopped(server):
    endless = "SELECT count(*) AS left_alone FROM range(1000000000000) a WHERE sqrt(id) < 0"
    with pytest.raises(httpx.ReadTimeout):
        server["reader"].post("/v1/sql", json={"sql": endless}, timeout=2)
    eventually(lambda: "left_alone" not in server["all"].get("/v1/operations").text, 20)


def test_an_operation_is_cancelled(server):
    endless = "SELECT count(*) AS n FROM range(1000000000000) a WHERE sqrt(id) < 0"
    started = server["writer"].post("/v1/operations", json={"sql": endless}).json()["id"]
    assert server["reader"].delete(f"/v1/operations/{started}").status_code == 404
    assert server["writer"].delete(f"/v1/operations/{started}").json() == {"was_running": True}
    answer = server["writer"].get(f"/v1/operations/{started}/result?wait=30")
    assert (answer.status_code, answer.json()["code"]) == (409, "OPERATION_CANCELLED")
