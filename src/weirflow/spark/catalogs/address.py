"""Which catalog a name stands for, read from ``KIND+URI`` and options. Nothing is looked up or opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from weirflow.errors import ConfigError, did_you_mean
from weirflow.spark.catalogs.kinds import DRIVERS, KINDS, OBJECT_STORES, SECRETS, CatalogKind

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TAKEN = {
    "spark_catalog": "Spark's own catalog",
    "iceberg": "the catalog that the package iceberg has in the Session's warehouse",
    "system": "where Spark has its variables and functions",
    "session": "where Spark has temporary views",
}
_ENVIRONMENT = "env:"
_PLAIN_WORD = re.compile(r"[a-z-]{1,24}")  # what else is in the place of a kind may be a secret
# What Spark itself takes for a secret, in the name of a property.
_SECRET_PROPERTY = re.compile(r"secret|password|passphrase|token|credential|access-?key|authorization", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "thrift": 9083}


@dataclass(frozen=True)
class NamedCatalog:
    """A catalog as it was asked for.

    Attributes:
        name: what SQL calls it.
        kind: one of ``KINDS``.
        uri: where it is; empty where a kind has no URI.
        options: those of its kind, and properties of Iceberg's own. They may be secrets: not in the repr.
    """

    name: str
    kind: str
    uri: str
    options: Mapping[str, str] = field(repr=False, hash=False)

    @property
    def address(self) -> str:
        """The address, which holds no secret."""
        return f"{self.kind}+{self.uri}" if self.uri else self.kind

    @property
    def packages(self) -> tuple[str, ...]:
        """The connectors that Spark must have for it."""
        store = OBJECT_STORES.get(self._warehouse_scheme)
        driver = DRIVERS.get(urlsplit(self.uri).scheme)
        found = ("iceberg", *self._kind.packages, driver, store.package if store else None)
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def server(self) -> tuple[str, int] | None:
        """The host and port that must answer; None if there is none."""
        parts = urlsplit(self.uri)
        if not parts.hostname or parts.scheme not in _DEFAULT_PORTS:
            return None
        return parts.hostname, parts.port or _DEFAULT_PORTS[parts.scheme]

    @property
    def keeps_snapshots(self) -> bool:
        """Whether tables in it show their older snapshots."""
        return self._kind.keeps_snapshots

    @property
    def stored_secrets(self) -> tuple[str, ...]:
        """The options that are secrets and are given by value, so that to keep the catalog would be to store them."""
        return tuple(
            name for name, value in self.options.items() if _is_secret(name) and not value.startswith(_ENVIRONMENT)
        )

    def hiding_secrets(self, text: str) -> str:
        """Text without those of its secrets that a server has repeated in it."""
        for name in filter(_is_secret, self.options):
            text = text.replace(self._value(name), "***")
        return text

    def conf(self, timeout: float) -> dict[str, str]:
        """The Spark settings it becomes, secrets included; its server is given ``timeout`` seconds to be reached.

        Raises:
            ConfigError: an environment variable that an option names is not set.
        """
        prefix = f"spark.sql.catalog.{self.name}"
        properties = {
            **self._kind.fixed,
            **self._located(timeout),
            **{self._kind.options.get(name, name): self._value(name) for name in self.options},
        }
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            **{f"{prefix}.{name}": value for name, value in properties.items()},
        }

    @property
    def _kind(self) -> CatalogKind:
        return KINDS[self.kind]

    @property
    def _warehouse_scheme(self) -> str:
        scheme, separator, _ = self.options.get("warehouse", "").partition("://")
        return scheme.lower() if separator else ""

    def _located(self, timeout: float) -> dict[str, str]:
        """Where it is and how its files are read."""
        found = {"type": self._kind.implementation}
        store = OBJECT_STORES.get(self._warehouse_scheme)
        if store is not None and "io-impl" not in self.options:
            found["io-impl"] = store.file_io
        if self.kind == "iceberg-hadoop":
            return {**found, "warehouse": self.uri}
        if self.kind == "iceberg-jdbc":
            parts = urlsplit(self.uri)
            place = unquote(parts.path) if parts.scheme == "sqlite" else f"//{parts.netloc}{parts.path}"
            return {**found, "uri": f"jdbc:{parts.scheme}:{place}"}
        if self.kind == "iceberg-rest":
            found["rest.client.connection-timeout-ms"] = str(int(timeout * 1000))
        if "token" in self.options and self.kind == "iceberg-nessie":
            found["authentication.type"] = "BEARER"
        return {**found, "uri": self.uri} if self.uri else found

    def _value(self, option: str) -> str:
        value = self.options[option]
        if not _is_secret(option) or not value.startswith(_ENVIRONMENT):
            return value
        variable = value.removeprefix(_ENVIRONMENT)
        if variable not in os.environ:
            raise ConfigError(
                f"The option {option} of the catalog {self.name!r} is in the environment variable {variable!r}, "
                "which is not set.",
                hint=f"set {variable} before the Session is opened",
            )
        return os.environ[variable]


def parse_catalog(name: str, address: str, options: Mapping[str, str]) -> NamedCatalog:
    """Read an address and options, or raise ``ConfigError``; messages never repeat what could be a secret.

    Options that are no secrets may stand in the address, too, behind a question mark.

    >>> parse_catalog("lake", "iceberg-rest+https://lake.example/api?warehouse=prod", {}).uri
    'https://lake.example/api'
    """
    _check_name(name)
    kind, uri = _split(name, address)
    uri, in_address = _without_options(name, kind, uri)
    both = sorted(in_address.keys() & options.keys())
    if both:
        raise ConfigError(f"The option {both[0]} of the catalog {name!r} is given twice.")
    given = {**in_address, **options}
    _check_options(name, kind, given)
    if kind == "iceberg-nessie":
        given.setdefault("ref", "main")
    return NamedCatalog(name, kind, uri, given)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"A catalog cannot be called {name[:80]!r}.", hint="use letters, digits, - and _, as in lake_1"
        )
    if name in _TAKEN:
        raise ConfigError(
            f"A catalog cannot be called {name!r}: this is {_TAKEN[name]}.", hint="choose another name, such as lake"
        )


def _split(name: str, address: str) -> tuple[str, str]:
    """The kind and the URI."""
    kind, _, uri = address.partition("+")
    if kind == "delta" or kind.startswith("delta-"):
        raise ConfigError(
            f"The catalog {name!r} cannot be of Delta, which has no catalogs of its own.",
            hint="with packages=['delta'] its tables are in Spark's catalog (CREATE TABLE t USING delta), or at a path "
            "(delta.`s3://bucket/table`)",
        )
    if kind not in KINDS:
        shown = re.split(r"[:/?=@\s]", kind, maxsplit=1)[0]
        known = f"there are {', '.join(KINDS)}, as in {KINDS['iceberg-rest'].example}"
        near = did_you_mean(shown, KINDS)
        what = f"is called {shown!r}" if _PLAIN_WORD.fullmatch(shown) else f"begins the address of {name!r}"
        raise ConfigError(f"No kind of catalog {what}.", hint=f"{near} {known}" if near else known)
    return kind, uri


def _without_options(name: str, kind: str, uri: str) -> tuple[str, dict[str, str]]:
    """The URI alone, and the options behind its question mark."""
    problem = _problem_of_presence(kind, uri)
    if problem is None and uri:
        problem = _problem_of_uri(name, kind, uri)
    found = {} if problem else dict(parse_qsl(urlsplit(uri).query, keep_blank_values=True))
    secret = next(filter(_is_secret, found), None)
    if secret is not None:
        problem = f"holds a secret ({secret}); give it as an option instead"
    if problem is not None:
        example = KINDS[kind].example
        raise ConfigError(f"The address of the catalog {name!r} {problem}.", hint=f"write it like {example}")
    return uri.partition("?")[0], found


def _problem_of_presence(kind: str, uri: str) -> str | None:
    if uri and not KINDS[kind].schemes:
        return f"has a URI, and a catalog of kind {kind} has none"
    if not uri and KINDS[kind].schemes:
        return f"is only a kind: a catalog of kind {kind} needs a URI"
    return None


def _problem_of_uri(name: str, kind: str, uri: str) -> str | None:
    schemes = KINDS[kind].schemes
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "cannot be read: its host or port is none"
    if kind == "iceberg-hadoop" and parts.scheme in OBJECT_STORES:
        raise ConfigError(
            f"The catalog {name!r} cannot be a folder on {parts.scheme}://, where renames are not atomic: two writers "
            "could lose a commit.",
            hint="use iceberg-rest, iceberg-glue or iceberg-jdbc, with the folder as its warehouse",
        )
    is_file = parts.scheme in ("file", "sqlite")
    checks = (
        (
            parts.scheme not in schemes,
            f"begins with {parts.scheme[:40]!r}; it can be {' or '.join(f'{one}://' for one in schemes)}",
        ),
        ("@" in parts.netloc, "holds a user or password; give it as an option instead"),
        (bool(parts.fragment), "has a part after #"),
        (
            is_file and bool(parts.netloc or not parts.path.strip("/")),
            "names no file or folder: three slashes and a whole path follow the scheme",
        ),
        (parts.scheme in _DEFAULT_PORTS and (not host or port == 0), "has no host, or no port that can be used"),
    )
    return next((problem for is_so, problem in checks if is_so), None)


def _check_options(name: str, kind: str, options: Mapping[str, str]) -> None:
    known = KINDS[kind].options
    for option in options:
        if option not in known and (not _is_icebergs(option) or option.replace("-", "_") in known):
            listed = f"there are {', '.join(known)}" if known else "it has none"
            near = did_you_mean(option, known)
            besides = "properties of Iceberg's own have a dot or a dash in their names, as s3.endpoint"
            hint = f"{near} {listed}; {besides}" if near else f"{listed}; {besides}"
            raise ConfigError(f"A catalog of kind {kind} has no option {option[:40]!r}.", hint=hint)
        if not options[option]:
            raise ConfigError(f"The option {option} of the catalog {name!r} is empty.")
    for option in KINDS[kind].required:
        if option not in options:
            raise ConfigError(
                f"The catalog {name!r} needs the option {option}.",
                hint="the folder for its tables, as warehouse='s3://bucket/folder' or 'file:///folder'",
            )


def _is_icebergs(option: str) -> bool:
    """Whether this is the name of a property, which is passed on as it is."""
    return "." in option or "-" in option


def _is_secret(option: str) -> bool:
    return option in SECRETS or (_is_icebergs(option) and _SECRET_PROPERTY.search(option) is not None)
