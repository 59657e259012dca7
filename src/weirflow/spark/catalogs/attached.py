"""``AttachedCatalogs``: the catalogs of one Spark session, which come and go while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from weirflow.errors import EndpointError, PackageUnavailable, UnsupportedError
from weirflow.spark.catalogs.failures import explained
from weirflow.spark.catalogs.kinds import MARKERS
from weirflow.spark.errors import translate
from weirflow.spark.launch.probe import probe_tcp
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.spark.catalogs.address import NamedCatalog

_NO_FOLDER = "NoSuchNamespaceException"


class AttachedCatalogs:
    """Attaches catalogs to a native session by its settings, which Spark reads when a catalog is first used.

    Args:
        native: the Spark session.
        timeout: seconds that a catalog's server has to answer.
    """

    def __init__(self, native: Any, timeout: float) -> None:
        self._native = native
        self._timeout = timeout
        self._jvm = getattr(native, "_jvm", None) if hasattr(native, "_jsparkSession") else None

    def attach(self, catalog: NamedCatalog) -> None:
        """Make a catalog known, without asking whether it works.

        Raises:
            PackageUnavailable: Spark was started without a package that it needs.
            ConfigError: an environment variable that holds a secret of it is not set.
        """
        conf = catalog.conf(self._timeout)
        self._require_packages(catalog)
        for name, value in conf.items():
            self._native.conf.set(name, value)

    def attach_tried(self, catalog: NamedCatalog) -> None:
        """Make a catalog known that answers; of one that does not, nothing is left.

        Raises:
            EndpointUnreachable: nothing answers where it is.
            AuthenticationFailed: it refused the token, the password or the like.
            WeirflowError: whatever else it says.
        """
        try:
            if catalog.server is not None and self._jvm is not None:  # a Spark Connect server may see other hosts
                self._reach(catalog, *catalog.server)
            self.attach(catalog)
            with _told(catalog):
                self._native.sql(f"SHOW NAMESPACES IN {quoted(catalog.name)}").collect()
        except BaseException:
            self._forget(catalog)
            raise

    def detach(self, catalog: NamedCatalog) -> None:
        """Forget a catalog; what is in it stays.

        Raises:
            UnsupportedError: it is the current catalog, or Spark is behind a Spark Connect server.
        """
        if self._jvm is None:
            raise UnsupportedError(
                f"The catalog {catalog.name!r} cannot be dropped: Spark Connect has it until the session ends.",
                hint="close the Session and open one without it",
            )
        if self._native.catalog.currentCatalog() == catalog.name:
            raise UnsupportedError(
                f"The catalog {catalog.name!r} is the current one.", hint="USE spark_catalog.default first"
            )
        self._forget(catalog)

    def names(self) -> list[str]:
        """The catalogs that this session has settings for, or has used."""
        prefix = "spark.sql.catalog."
        used = [row[0] for row in self._native.sql("SHOW CATALOGS").collect()]
        settings = [row[0] for row in self._native.sql("SET").collect()]
        named = [name.removeprefix(prefix) for name in settings if name.startswith(prefix)]
        return sorted({*used, *(name for name in named if "." not in name)})

    def _reach(self, catalog: NamedCatalog, host: str, port: int) -> None:
        try:
            probe_tcp(host, port, self._timeout)
        except EndpointError as error:
            error.message = f"The catalog {catalog.name!r} does not answer: {error.message}"
            raise

    def _require_packages(self, catalog: NamedCatalog) -> None:
        """On a Spark Connect server the first use tells."""
        if self._jvm is None:
            return
        for package in catalog.packages:
            try:
                self._jvm.java.lang.Class.forName(MARKERS[package])
            except Py4JJavaError:
                raise missing_package(catalog, package) from None

    def _forget(self, catalog: NamedCatalog) -> None:
        """Take away the settings of a catalog, and what Spark has loaded of it."""
        for name in catalog.conf(self._timeout):
            self._native.conf.unset(name)
        if self._jvm is not None:
            manager = self._native._jsparkSession.sessionState().catalogManager()  # noqa: SLF001 - no public way
            loaded = manager.getClass().getDeclaredField("catalogs")  # as above: reset() would forget all of them
            loaded.setAccessible(True)
            loaded.get(manager).remove(catalog.name)


def missing_package(catalog: NamedCatalog, package: str) -> PackageUnavailable:
    """The error for a package that must be there before Spark starts."""
    return PackageUnavailable(
        f"The catalog {catalog.name!r} ({catalog.kind}) needs the package {package}, and Spark runs without it.",
        hint=f"start the Session with packages={[*catalog.packages]}, or with the catalog in catalogs=",
    )


@contextmanager
def _told(catalog: NamedCatalog) -> Iterator[None]:
    """Raise what a catalog says as one sentence that names it."""
    try:
        yield
    except Exception as error:
        if catalog.kind == "iceberg-hadoop" and _NO_FOLDER in str(error):
            return  # it is made with the first table
        known = explained(error, catalog) or translate(error)
        if known is None:
            raise
        known.message = catalog.hiding_secrets(known.message)
        raise known from None
