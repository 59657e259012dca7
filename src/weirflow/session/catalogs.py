"""``SessionCatalogs``: the catalogs that a Session has by name, from its settings, from statements, and kept."""

from __future__ import annotations

import fnmatch
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import SecretStr

from weirflow.errors import AlreadyExists, CatalogNotFound, ConfigError, UnsupportedError, WeirflowError, did_you_mean
from weirflow.metadata import open_metadata
from weirflow.spark.catalogs.address import NamedCatalog, parse_catalog
from weirflow.sql.statements.catalogs import CatalogStatement, CreateCatalog, DropCatalog, ShowCatalogs

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.spark.catalogs.attached import AttachedCatalogs

_log = logging.getLogger(__name__)

_KEPT = "catalog/named/"
_FORMAT = 1
_ADDRESS = "address"
_OWN = "spark_catalog"


@dataclass(frozen=True)
class CatalogInfo:
    """A catalog that SQL can name. Holds no secrets.

    Attributes:
        kind: such as ``iceberg-rest``; ``spark`` for Spark's own, ``settings`` for one of ``spark_conf`` or a package.
        address: where it is; empty where only Spark knows.
    """

    name: str
    kind: str
    address: str

    def __str__(self) -> str:
        return f"{self.name} ({self.address or self.kind})"


class SessionCatalogs:
    """The catalogs of a Session, attached to its Spark once that runs.

    Args:
        settings: what the Session was built with.
        store: the metadata store of a durable Session, which keeps catalogs that it is told to create; None for others.
        attached: starts Spark, with the packages that are needed by then.
        lock: the one that whoever starts Spark holds.
    """

    def __init__(
        self,
        settings: Mapping[str, SecretStr | Mapping[str, SecretStr]],
        store: Path | None,
        attached: Callable[[], AttachedCatalogs],
        lock: threading.RLock,
    ) -> None:
        self._store = store
        self._attached = attached
        self._lock = lock
        self._changing = threading.Lock()  # taken before the other, and held while a catalog is tried
        self._named = {name: _of_setting(name, setting) for name, setting in settings.items()}
        self._kept: set[str] | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        """The connectors that Spark must have for them."""
        return tuple(dict.fromkeys(package for one in self._known() for package in one.packages))

    def infos(self) -> tuple[CatalogInfo, ...]:
        """Those that have an address; starts nothing."""
        return tuple(_info(one) for one in self._known())

    def attach_all(self, attached: AttachedCatalogs) -> None:
        """Make all of them known to a Spark that has just started; those that are kept as far as it can be done."""
        for catalog in self._known():
            try:
                attached.attach(catalog)
            except WeirflowError as error:
                if catalog.name not in (self._kept or ()):
                    raise
                _log.warning("the catalog %s is not there: %s", catalog.name, error.message)

    def prepare(self, name: str, address: str, options: Mapping[str, str]) -> None:
        """Start Spark with what a catalog needs that is going to be added, if Spark does not run yet.

        Raises:
            ConfigError: as ``add``, and so do the others that need no Spark.
        """
        with self._changing:
            self._named[name] = self._new(name, address, options)
            try:
                self._attached()
            finally:
                del self._named[name]

    def add(self, name: str, address: str, options: Mapping[str, str]) -> None:
        """Try a catalog, and have it from now on.

        Raises:
            AlreadyExists: there is one of this name.
            ConfigError: its address or an option cannot be used, or a durable Session would have to store a secret.
            WeirflowError: it cannot be reached, or does not let us in; nothing has changed.
        """
        with self._changing:
            catalog = self._new(name, address, options)
            self._attached().attach_tried(catalog)
            self._keep(catalog)
            with self._lock:
                self._named[name] = catalog

    def drop(self, name: str) -> None:
        """Forget a catalog; what is in it stays.

        Raises:
            CatalogNotFound: there is none of this name that was given an address.
        """
        with self._changing:
            catalog = next((one for one in self._known() if one.name == name), None)
            if catalog is None:
                known = [one.name for one in self._known()]
                raise CatalogNotFound(
                    f"No catalog is called {name!r} that was created by its address.",
                    hint=did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else None),
                )
            self._attached().detach(catalog)
            self._forget(name)
            with self._lock:
                del self._named[name]

    def all(self) -> tuple[CatalogInfo, ...]:
        """All that SQL can name, Spark's own and those of ``spark_conf`` included."""
        named = {one.name: one for one in self.infos()}
        others = [
            CatalogInfo(name, "spark" if name == _OWN else "settings", "")
            for name in self._attached().names()
            if name not in named
        ]
        return tuple(sorted([*named.values(), *others], key=lambda one: one.name))

    def run(self, statement: CatalogStatement) -> pa.Table:
        """What a statement returns, which has happened by then."""
        match statement:
            case CreateCatalog():
                if not (statement.if_not_exists and self.has(statement.name)):
                    self.add(statement.name, statement.address, statement.options)
            case DropCatalog():
                try:
                    self.drop(statement.name)
                except CatalogNotFound:
                    if not statement.if_exists:
                        raise
            case ShowCatalogs():
                return _listing(one for one in self.all() if _fits(one.name, statement.pattern))
        return pa.table({})

    def has(self, name: str) -> bool:
        """Whether a catalog of this name was created by its address."""
        return any(one.name == name for one in self._known())

    def _new(self, name: str, address: str, options: Mapping[str, str]) -> NamedCatalog:
        """A catalog that may be added, as far as can be told without asking it."""
        catalog = parse_catalog(name, address, options)
        if self.has(name):
            raise AlreadyExists(
                f"There is a catalog {name!r} already.", hint="choose another name, or DROP CATALOG it first"
            )
        self._refuse_stored_secrets(catalog)
        return catalog

    def _known(self) -> list[NamedCatalog]:
        with self._lock:
            if self._kept is None:
                self._kept = set()
                for catalog in self._read_kept():
                    if catalog.name not in self._named:  # what the settings say now wins
                        self._named[catalog.name] = catalog
                        self._kept.add(catalog.name)
            return list(self._named.values())

    def _read_kept(self) -> list[NamedCatalog]:
        if self._store is None or not self._store.exists():
            return []
        with open_metadata(str(self._store)) as store:
            documents = store.documents.list(_KEPT)
        found = []
        for document in documents:
            value = document.value
            if value.get("format") != _FORMAT:
                _log.warning("%s was written by a later version of Weirflow; it is not there", document.name)
                continue
            found.append(parse_catalog(document.name.removeprefix(_KEPT), value[_ADDRESS], value["options"]))
        return found

    def _refuse_stored_secrets(self, catalog: NamedCatalog) -> None:
        secrets = catalog.stored_secrets
        if self._store is not None and secrets:
            raise UnsupportedError(
                "A durable Session keeps the catalogs that it creates, and stores no secrets such as the "
                f"{secrets[0]} of {catalog.name!r}.",
                hint=f"put it into an environment variable and write {secrets[0]} = 'env:VARIABLE', or give the "
                "catalog to Session(catalogs=...)",
            )

    def _keep(self, catalog: NamedCatalog) -> None:
        if self._store is None:
            return
        value = {"format": _FORMAT, _ADDRESS: catalog.address, "options": dict(catalog.options)}
        with open_metadata(str(self._store)) as store:
            known = store.documents.get(_KEPT + catalog.name)
            version = 0 if known is None else known.version
            store.documents.put(_KEPT + catalog.name, value, expected_version=version)

    def _forget(self, name: str) -> None:
        if self._store is None or not self._store.exists():
            return
        with open_metadata(str(self._store)) as store:
            known = store.documents.get(_KEPT + name)
            if known is not None:
                store.documents.delete(_KEPT + name, expected_version=known.version)


def _of_setting(name: str, setting: SecretStr | Mapping[str, SecretStr]) -> NamedCatalog:
    if isinstance(setting, SecretStr):
        return parse_catalog(name, setting.get_secret_value(), {})
    options = {option: value.get_secret_value() for option, value in setting.items()}
    if _ADDRESS not in options:
        raise ConfigError(
            f"The catalog {name!r} has options and no address.",
            hint=f"catalogs={{{name!r}: {{'address': 'iceberg-rest+https://host/path', 'token': ...}}}}",
        )
    return parse_catalog(name, options.pop(_ADDRESS), options)


def _info(catalog: NamedCatalog) -> CatalogInfo:
    return CatalogInfo(catalog.name, catalog.kind, catalog.address)


def _listing(infos: Iterable[CatalogInfo]) -> pa.Table:
    rows = list(infos)
    columns = {"catalog": "name", "kind": "kind", "address": "address"}
    return pa.table(
        {title: pa.array([getattr(row, field) for row in rows], pa.string()) for title, field in columns.items()}
    )


def _fits(name: str, pattern: str | None) -> bool:
    """Whether a name is one that Spark's pattern means, in capitals or not."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name.lower(), one.strip().lower()) for one in pattern.split("|"))
