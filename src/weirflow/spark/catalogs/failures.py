"""What catalogs and object stores say when they do not work, as one sentence that tells what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from weirflow.errors import (
    AuthenticationFailed,
    ConfigError,
    EndpointUnreachable,
    PackageUnavailable,
    PathNotFound,
    WeirflowError,
    shortened,
)
from weirflow.spark.catalogs.kinds import OBJECT_STORES
from weirflow.spark.jars.packages import FILE_SYSTEMS

if TYPE_CHECKING:
    from weirflow.spark.catalogs.address import NamedCatalog

_NO_FILE_SYSTEM = re.compile(r'No FileSystem for scheme "([\w.+-]+)"')
_NO_HADOOP_CLASS = re.compile(r"ClassNotFoundException: Class (org\.apache\.hadoop\.fs\.(?:s3a|azurebfs)\.[\w.$]+)")
_NO_CLASS = re.compile(
    r"(?:Cannot find catalog plugin class for catalog '[^']*': |NoClassDefFoundError: "
    r"|ClassNotFoundException: (?:Class )?|No suitable driver found for (?=jdbc:))([\w.$/:]+)"
)
_IN_CONNECT = re.compile(r"^\(((?:\w+\.)+\w+)\) (.*)", re.DOTALL)


class Rule(NamedTuple):
    """What is said if a pattern is found in what was thrown.

    In the sentence ``{who}`` is the catalog and ``{said}`` the first line of what was thrown first.
    """

    pattern: re.Pattern[str]
    kind: type[WeirflowError]
    sentence: str
    hint: str


_OF_CATALOGS = (
    Rule(
        re.compile(r"SQLITE_CANTOPEN"),
        PathNotFound,
        "{who} cannot open its database file.",
        "make its folder first, or correct the path",
    ),
    Rule(
        re.compile(r"Unable to load credentials from any of the providers|NoAwsCredentials"),
        AuthenticationFailed,
        "{who} needs AWS credentials, and none were found.",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, before the Session starts, or have a role",
    ),
    Rule(
        re.compile(r"Unable to load region from any of the providers"),
        ConfigError,
        "{who} needs an AWS region, and none was found.",
        "give the option region, or set AWS_REGION",
    ),
    Rule(
        re.compile(
            r"NotAuthorizedException|ForbiddenException|UnrecognizedClientException|InvalidSignatureException"
            r"|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|password authentication failed"
            r"|no password was provided"
        ),
        AuthenticationFailed,
        "{who} refused the credentials: {said}.",
        "check its token, credential, user and password, or the AWS_* environment, and what they may do",
    ),
    Rule(
        re.compile(
            r"HttpHostConnectException|UnknownHostException|ConnectException|NoRouteToHost|SocketTimeoutException"
            r"|ConnectTimeoutException|Could not connect to meta store|Connection to \S+ refused"
        ),
        EndpointUnreachable,
        "{who} does not answer: {said}.",
        "check its address, that the server runs, and that no firewall is in between",
    ),
)
# Of a catalog that works these may say that a statement is wrong.
_OF_TRIED_ONES = (
    Rule(
        re.compile(r"RESTException|BadRequestException|ServiceFailureException"),
        ConfigError,
        "{who} answers, but not like an Iceberg catalog: {said}.",
        "check the path of its address: Weirflow asks for ADDRESS/v1/config",
    ),
)
_PACKAGES = (
    ("org.apache.iceberg.", "iceberg"),
    ("software.amazon.", "iceberg-aws"),
    ("com.google.", "iceberg-gcp"),
    ("com.azure.", "iceberg-azure"),
    ("org.apache.hadoop.fs.s3a.", "s3"),
    ("org.apache.hadoop.fs.azurebfs.", FILE_SYSTEMS["abfss"]),
    ("jdbc:sqlite", "sqlite"),
    ("jdbc:postgresql", "postgresql"),
    ("org.sqlite.", "sqlite"),
    ("org.postgresql.", "postgresql"),
)


class Thrown(NamedTuple):
    """A Java exception."""

    kind: str
    message: str


def explained(error: BaseException, catalog: NamedCatalog | None = None) -> WeirflowError | None:
    """The error for what a catalog, or the storage below it, has thrown; None if it is about something else.

    Args:
        error: as PySpark raises it.
        catalog: the one that was asked; None if it is not known.
    """
    chain = list(_thrown(error))
    # Of a query only what each says first: behind it there may be the traces of others.
    said = [one.message if catalog is not None else one.message.partition("\n")[0] for one in chain]
    text = "\n".join(f"{one.kind}: {message}" for one, message in zip(chain, said, strict=True))
    is_catalogs = catalog is not None or "org.apache.iceberg." in text or "software.amazon.awssdk." in text
    if found := _NO_FILE_SYSTEM.search(text):
        return _no_file_system(found[1])
    if found := (_NO_CLASS if is_catalogs else _NO_HADOOP_CLASS).search(text):
        return _no_class(_named(catalog), found[1].replace("/", ".").rstrip("."))
    rules: tuple[Rule, ...] = _OF_CATALOGS if is_catalogs else ()
    for rule in rules if catalog is None else (*rules, *_OF_TRIED_ONES):
        if rule.pattern.search(text):
            return rule.kind(rule.sentence.format(who=_named(catalog), said=_said(chain)), hint=rule.hint)
    return None


def _no_file_system(scheme: str) -> WeirflowError:
    if scheme not in FILE_SYSTEMS:
        return ConfigError(f"Spark has no file system for paths that begin with {scheme}://.")
    return PackageUnavailable(
        f"Spark runs without the package for paths that begin with {scheme}://.",
        hint=f"start the Session with packages=['{FILE_SYSTEMS[scheme]}']; tables of Iceberg need "
        f"packages=['{OBJECT_STORES[scheme].package}'] instead",
    )


def _no_class(who: str, missing: str) -> WeirflowError:
    package = _package_of(missing)
    if package is None:
        return PackageUnavailable(
            f"{who} needs a class that Spark does not have: {missing}.", hint="start the Session with its package"
        )
    return PackageUnavailable(
        f"{who} needs the package {package}, and Spark runs without it.",
        hint=f"start the Session with packages=['{package}']; a Spark Connect server needs it in its own settings",
    )


def _package_of(missing: str) -> str | None:
    return next((package for start, package in _PACKAGES if missing.startswith(start)), None)


def _named(catalog: NamedCatalog | None) -> str:
    return (
        "A catalog, or the storage below it,"
        if catalog is None
        else f"The catalog {catalog.name!r} ({catalog.address})"
    )


def _said(chain: list[Thrown]) -> str:
    """The first line of the last exception that has something to say."""
    told = [one.message.strip().splitlines()[0] for one in chain if one.message.strip()]
    return shortened(told[-1].rstrip("."))[:300] if told else "it does not say why"


def _thrown(error: BaseException) -> Iterator[Thrown]:
    """A Java exception and its causes, from the outside in."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        found = _IN_CONNECT.match(str(error))
        yield Thrown(*found.groups()) if found else Thrown(type(error).__name__, str(error))
        return
    while java is not None:
        yield Thrown(java.getClass().getName(), str(java.getMessage() or ""))
        java = java.getCause()
