import pickle

import pytest
from support.hang import HangingEndpoint, dead_port

from weirflow.errors import ConfigError, EndpointUnreachable
from weirflow.spark.launch.endpoint import Endpoint, HostPort, parse_endpoint
from weirflow.spark.launch.probe import probe_tcp

CANARY = "canary-5f2c9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sc://localhost", Endpoint("sc", (HostPort("localhost", 15002),))),
        ("sc://localhost/", Endpoint("sc", (HostPort("localhost", 15002),))),
        ("sc://localhost:15003", Endpoint("sc", (HostPort("localhost", 15003),))),
        ("sc://10.0.0.1:1", Endpoint("sc", (HostPort("10.0.0.1", 1),))),
        ("sc://[::1]:65535", Endpoint("sc", (HostPort("::1", 65535),))),
        ("sc://[::1]", Endpoint("sc", (HostPort("::1", 15002),))),
        ("sc://spark_server:9", Endpoint("sc", (HostPort("spark_server", 9),))),
        ("sc://h/;", Endpoint("sc", (HostPort("h", 15002),))),
        ("sc://h/;user_id=an%C3%A9", Endpoint("sc", (HostPort("h", 15002),), {"user_id": "ané"})),
        ("sc://h/;use_ssl=true", Endpoint("sc", (HostPort("h", 15002),), {"use_ssl": "true"})),
        (
            "sc://h:9/;user_id=ann%20b;x-tenant=a%3Db;",
            Endpoint("sc", (HostPort("h", 9),), {"user_id": "ann b", "x-tenant": "a=b"}),
        ),
        ("spark://127.0.0.1:7077", Endpoint("spark", (HostPort("127.0.0.1", 7077),))),
        ("spark://[::1]:7077", Endpoint("spark", (HostPort("::1", 7077),))),
        ("spark://a:1,b.example.com:2", Endpoint("spark", (HostPort("a", 1), HostPort("b.example.com", 2)))),
    ],
)
def test_accepted_endpoints(text, expected):
    assert parse_endpoint(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost:15002",
        "local[2]",
        "yarn",
        "k8s://https://h:443",
        "http://h:15002",
        "SC://h",
        "spark-connect://h",
        "sc:/h:15002",
        None,
        7077,
    ],
)
def test_other_schemes_are_refused_and_the_accepted_ones_named(text):
    with pytest.raises(ConfigError) as caught:
        parse_endpoint(text)
    assert "sc://HOST[:PORT]" in str(caught.value)
    assert "spark://HOST:PORT" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sc://", "host is missing"),
        ("sc://:15002", "host is missing"),
        ("sc://h:0", "port"),
        ("sc://h:65536", "port"),
        ("sc://h:", "port"),
        ("sc://h:-1", "port"),
        ("sc://h:٣", "port"),
        ("sc://h:1:2", "port"),
        ("sc://::1:15002", "host is missing"),
        ("sc://[::g]:1", "IPv6"),
        ("sc://[h]:1", "IPv6"),
        ("sc://h ost:1", "neither a name"),
        ("sc://h\n:1", "neither a name"),
        ("sc://h\x00:1", "neither a name"),
        ("sc://-h:1", "neither a name"),
        ("sc://a:1,b:2", "port"),
        ("sc://h/path", "no path"),
        ("sc://h/path/;use_ssl=true", "no path"),
        ("sc://h;use_ssl=true", "'/;'"),
        ("sc://h/;use_ssl", "NAME=VALUE"),
        ("sc://h/;x=a==", "NAME=VALUE"),
        ("sc://h/;use_ssl=yes", "true or false"),
        ("sc://h/;session_id=1", "UUID"),
        ("sc://h/;X-Tenant=a", "lower case"),
        ("sc://h/;x-tenant=a%0Ab", "printable"),
        ("sc://h/;=a", "lower case"),
        (f"sc://h/;user_agent={'a' * 2049}", "2048"),
        ("sc://user@h:1", "in front of the host"),
        ("spark://h", "port is missing"),
        ("spark://", "host is missing"),
        ("spark://a:1,", "host is missing"),
        ("spark://a:1,b", "port is missing"),
        ("spark://a:1/", "without path"),
        ("spark://a:1;x=y", "without path"),
        ("spark://a_b:1", "underscore"),
    ],
)
def test_malformed_endpoints_say_what_is_wrong(text, problem):
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        parse_endpoint(text)
    assert problem in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        f"sc://h/;token={CANARY}",
        f"sc://h/;use_ssl=true;TOKEN={CANARY}",
        f"sc://h/;%74oken={CANARY}",
        f"sc://h/;authorization=Bearer%20{CANARY}",
    ],
)
def test_a_token_in_the_address_is_refused(text):
    with pytest.raises(ConfigError, match="carries a secret") as caught:
        parse_endpoint(text)
    assert "token=..." in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"sc://h;token={CANARY}",
        f"sc://h/token={CANARY}",
        f"sc://h/;token={CANARY}=",
        f"sc://h?token={CANARY}",
        f"sc://user:{CANARY}@h:1",
        f"http://h/;token={CANARY}",
        f"http://user:{CANARY}@h/",
        f"token={CANARY}",
        f"spark://h:1;token={CANARY}",
        f"sc://h token={CANARY}",
    ],
)
def test_no_message_repeats_what_may_be_secret(text):
    with pytest.raises(ConfigError) as caught:
        parse_endpoint(text)
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)


def test_parameters_stay_out_of_the_printed_form():
    endpoint = parse_endpoint(f"sc://[::1]:9/;x-tenant={CANARY}")
    assert str(endpoint) == "sc://[::1]:9"
    assert CANARY not in repr(endpoint)


def test_several_masters_make_one_master_url():
    assert parse_endpoint("spark://a:1,b:2").url == "spark://a:1,b:2"


def test_an_endpoint_is_a_value():
    endpoint = parse_endpoint("sc://h/;use_ssl=true")
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint
    assert hash(endpoint) == hash(parse_endpoint("sc://h/;use_ssl=true"))


@pytest.mark.parametrize(("text", "asked"), [("", None), (";use_ssl=True", True), (";use_ssl=false", False)])
def test_use_ssl_is_asked_for_refused_or_not_mentioned(text, asked):
    assert parse_endpoint(f"sc://h/{text}").use_ssl is asked


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("LocalHost.", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback(host, loopback):
    assert HostPort(host, 1).is_loopback is loopback


def test_probe_passes_where_something_listens():
    with HangingEndpoint() as endpoint:
        probe_tcp("127.0.0.1", endpoint.port, timeout=5.0)


def test_probe_names_a_dead_endpoint():
    port = dead_port()
    with pytest.raises(EndpointUnreachable, match=rf"127\.0\.0\.1:{port}.*connection refused") as caught:
        probe_tcp("127.0.0.1", port, timeout=5.0)
    assert "check the host and port" in str(caught.value)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid"])
def test_probe_names_an_unknown_host(host):
    with pytest.raises(EndpointUnreachable, match="host name is not known"):
        probe_tcp(host, 7077, timeout=20.0)
