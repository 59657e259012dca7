"""Options of Spark's own sources and sinks by name, so that a slip of the pen is not silently without effect.

Spark ignores options that it does not know. One that is nearly the name of a known one is refused; any other is handed
on, as a source may know more than is listed here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from weirflow.errors import ConfigError

_FILES = (
    "compression", "ignoreCorruptFiles", "ignoreMissingFiles", "mergeSchema", "modifiedAfter", "modifiedBefore", "path",
    "pathGlobFilter", "recursiveFileLookup", "maxRecordsPerFile", "partitionOverwriteMode",
)  # fmt: skip
_FILE_STREAMS = (
    "cleanSource", "fileNameOnly", "latestFirst", "maxBytesPerTrigger", "maxCachedFiles", "maxFileAge",
    "maxFilesPerTrigger", "retention", "sourceArchiveDir",
)  # fmt: skip
_STREAMS = ("checkpointLocation", "checkpoint.location", "failOnDataLoss", "queryName")
_TEXTS = (
    "columnNameOfCorruptRecord", "dateFormat", "encoding", "charset", "inferSchema", "lineSep", "locale", "mode",
    "samplingRatio", "timestampFormat", "timestampNTZFormat", "timeZone", "preferDate", "singleVariantColumn",
    "enableDateTimeParsingFallback",
)  # fmt: skip
_OF: Mapping[str, tuple[str, ...]] = {
    "parquet": ("datetimeRebaseMode", "int96RebaseMode"),
    "orc": (),
    "text": ("wholetext", "lineSep", "encoding"),
    "csv": (
        *_TEXTS, "header", "sep", "delimiter", "quote", "quoteAll", "escape", "escapeQuotes",
        "charToEscapeQuoteEscaping", "comment", "nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf",
        "multiLine", "maxColumns",
        "maxCharsPerColumn", "enforceSchema", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace",
        "unescapedQuoteHandling", "extension",
    ),
    "json": (
        *_TEXTS, "multiLine", "primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames",
        "allowSingleQuotes", "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter",
        "allowUnquotedControlChars", "allowNonNumericNumbers", "dropFieldIfAllNull", "ignoreNullFields",
        "writeNonAsciiCharacterAsCodePoint",
    ),
    "kafka": (
        "kafka.bootstrap.servers", "kafka.group.id", "kafka.security.protocol", "assign", "subscribe",
        "subscribePattern", "topic", "startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp",
        "endingOffsets",
        "endingOffsetsByTimestamp", "endingTimestamp", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
        "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "includeHeaders",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "startingOffsetsByTimestampStrategy",
    ),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "console": ("numRows", "truncate"),
    "memory": (),
    "noop": (),
}  # fmt: skip
_WITH_FILES = frozenset({"parquet", "orc", "text", "csv", "json"})
_NEAR = 0.8

FORMATS = (
    *_OF,
    "avro",
    "delta",
    "iceberg",
    "jdbc",
    "socket",
    "xml",
    "binaryFile",
    "rate-micro-batch",
    "kafka-transactions",
)
"""The formats that Spark and Weirflow's connectors have."""


def require_known_options(source: str | None, names: Iterable[str]) -> None:
    """``ConfigError`` for an option that is nearly one of a source's, and none of them."""
    own = _OF.get((source or "").casefold())
    if own is None:
        return
    files = (*_FILES, *_FILE_STREAMS) if source in _WITH_FILES else ()
    known = {name.casefold(): name for name in (*own, *files, *_STREAMS)}
    for name in names:
        if name.casefold() in known:
            continue
        near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=_NEAR)
        if near:
            raise ConfigError(
                f"{source} has no option {name!r}, and Spark would ignore it.",
                hint=f"did you mean {known[near[0]]!r}?",
            )
