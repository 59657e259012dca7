"""Tables, views and schemas of Spark's catalog as plain data that JSON can hold, and back.

Spark's classes are read and made by the names of their fields, for each version has some more. A field that is not
listed here has its default when it is made again: statistics are such a one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_PRIVATE_FINAL = 18
"""How Java marks what a case class is made of, in the order of its constructor."""

Definition = dict[str, Any]


class CatalogCodec:
    """Reads and makes objects of Spark's catalog.

    Args:
        jvm: the view of the JVM that has them.
    """

    def __init__(self, jvm: Any) -> None:
        self._jvm = _Classes(jvm)
        self._shapes: dict[str, tuple[list[str], Any]] = {}
        self._empty: dict[tuple[_Field, str], Any] = {}

    def table(self, found: Any) -> Definition:
        """A table or view as data."""
        return _read(found, _TABLE)

    def new_table(self, data: Definition) -> Any:
        """The table or view in data."""
        return self._made("CatalogTable", data, _TABLE)

    def schema(self, found: Any) -> Definition:
        """A schema (a database) as data."""
        return _read(found, _SCHEMA)

    def new_schema(self, data: Definition) -> Any:
        """The schema in data."""
        return self._made("CatalogDatabase", data, _SCHEMA)

    def _made(self, kind: str, data: Definition, fields: Mapping[str, _Field]) -> Any:
        names, companion = self._shape(kind)
        values = []
        for number, name in enumerate(names, 1):
            if name == "storage":
                values.append(self._made("CatalogStorageFormat", data["storage"], _STORAGE))
            elif name in fields and name in data:
                values.append(self._value(fields[name], data[name]))
            else:
                values.append(getattr(companion, f"apply$default${number}")())
        return self._jvm.of(_CATALOG + kind)(*values)

    def _value(self, field: _Field, data: Any) -> Any:
        """What is made of data; once for what is empty, as most of it is, for each call to the JVM takes its time."""
        if data not in (None, [], {}):
            return field.make(self._jvm, data)
        key = field, str(data)
        if key not in self._empty:
            self._empty[key] = field.make(self._jvm, data)
        return self._empty[key]

    def _shape(self, kind: str) -> tuple[list[str], Any]:
        """What a class is made of, and the object that has the defaults."""
        if kind not in self._shapes:
            by_name = self._jvm.of("java.lang.Class").forName
            fields = by_name(_CATALOG + kind).getDeclaredFields()
            names = [one.getName() for one in fields if one.getModifiers() == _PRIVATE_FINAL]
            self._shapes[kind] = names, by_name(f"{_CATALOG}{kind}$").getField("MODULE$").get(None)
        return self._shapes[kind]


class _Classes:
    """Classes of the JVM, each looked up once: it takes a call for each part of its name."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._known: dict[str, Any] = {}

    def of(self, name: str) -> Any:
        """The class of a name."""
        if name not in self._known:
            found = self._jvm
            for part in name.split("."):
                found = getattr(found, part)
            self._known[name] = found
        return self._known[name]


@dataclass(frozen=True)
class _Field:
    """How a field is read from Spark, and made for it."""

    read: Callable[[Any], Any]
    make: Callable[[_Classes, Any], Any]


def _read(found: Any, fields: Mapping[str, _Field]) -> Definition:
    there = {found.productElementName(index) for index in range(found.productArity())}
    data = {name: field.read(getattr(found, name)()) for name, field in fields.items() if name in there}
    if "storage" in there:
        data["storage"] = _read(found.storage(), _STORAGE)
    return data


def _same(value: Any) -> Any:
    return value


def _list(found: Any) -> list[Any]:
    return [found.apply(index) for index in range(found.size())]


def _dict(found: Any) -> dict[str, str]:
    keys = found.keys().toSeq()
    return {key: found.apply(key) for key in _list(keys)}


def _seq(jvm: _Classes, values: list[Any]) -> Any:
    return jvm.of("org.apache.spark.api.python.PythonUtils").toSeq(values)


def _map(jvm: _Classes, values: dict[str, str]) -> Any:
    return jvm.of("org.apache.spark.api.python.PythonUtils").toScalaMap(values)


def _option(field: _Field) -> _Field:
    return _Field(
        lambda found: field.read(found.get()) if found.isDefined() else None,
        lambda jvm, value: jvm.of("scala.Option").apply(None if value is None else field.make(jvm, value)),
    )


def _names(found: Any) -> list[str]:
    return [*_list(found.nameParts())]


def _identifier(jvm: _Classes, names: list[str]) -> Any:
    qualifier = [jvm.of("scala.Option").apply(one) for one in reversed(names[:-1])]
    return jvm.of("org.apache.spark.sql.catalyst.TableIdentifier")(names[-1], *qualifier)


def _buckets(jvm: _Classes, value: list[Any]) -> Any:
    count, columns, order = value
    return jvm.of(_CATALOG + "BucketSpec")(count, _seq(jvm, columns), _seq(jvm, order))


_PLAIN = _Field(_same, lambda _, value: value)
_LONG = _Field(_same, lambda jvm, value: jvm.of("java.lang.Long").valueOf(str(value)))
_SEQ = _Field(_list, _seq)
_MAP = _Field(_dict, _map)
_URI = _Field(lambda found: found.toString(), lambda jvm, value: jvm.of("java.net.URI")(value))
_TEXT = _option(_PLAIN)
_STORAGE = {
    "locationUri": _option(_URI),
    "inputFormat": _TEXT,
    "outputFormat": _TEXT,
    "serde": _TEXT,
    "compressed": _PLAIN,
    "properties": _MAP,
}
_TABLE = {
    "identifier": _Field(_names, _identifier),
    "tableType": _Field(lambda found: found.name(), lambda jvm, name: jvm.of(_CATALOG + "CatalogTableType")(name)),
    "schema": _Field(
        lambda found: found.json(), lambda jvm, text: jvm.of("org.apache.spark.sql.types.DataType").fromJson(text)
    ),
    "provider": _TEXT,
    "partitionColumnNames": _SEQ,
    "bucketSpec": _option(
        _Field(lambda one: [one.numBuckets(), _list(one.bucketColumnNames()), _list(one.sortColumnNames())], _buckets)
    ),
    "owner": _PLAIN,
    "createTime": _LONG,
    "lastAccessTime": _LONG,
    "createVersion": _PLAIN,
    "properties": _MAP,
    "viewText": _TEXT,
    "comment": _TEXT,
    "collation": _TEXT,
    "unsupportedFeatures": _SEQ,
    "tracksPartitionsInCatalog": _PLAIN,
    "schemaPreservesCase": _PLAIN,
    "ignoredProperties": _MAP,
    "viewOriginalText": _TEXT,
}
_SCHEMA = {"name": _PLAIN, "description": _PLAIN, "locationUri": _URI, "properties": _MAP}
