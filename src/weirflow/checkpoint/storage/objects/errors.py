"""obstore's errors turned into ours, without the credentials that servers like to repeat."""

from __future__ import annotations

import re
from collections.abc import Iterable

from obstore import exceptions as obstore_errors

from weirflow.errors import (
    ObjectChanged,
    ObjectExists,
    ObjectNotFound,
    StorageError,
    UnsupportedError,
    WeirflowError,
)

# What obstore raises for a failed request; it reports a missing object by the built-in error.
STORE_ERRORS = (obstore_errors.BaseError, FileNotFoundError)

_SERVER_CODE = re.compile(r"<Code>(\w+)</Code>")
_USER = re.compile(r"//[^/@\s]*@")
_QUERY = re.compile(r"\?[^\s)]*")
_BEYOND_END = ("416 Range Not Satisfiable", "Wanted range starting at")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")

_REFUSED_HINT = "check the credentials and that they may read, write, list and delete here"
_BUCKET_HINT = "create the bucket or container first, or correct the URI"
_HTTP_HINT = "a plain http:// endpoint needs the option allow_http='true'"
_UNREACHABLE_HINT = "check the endpoint and the network; what was being written is whole or not there"


def is_beyond_end(error: Exception) -> bool:
    """Whether a range was refused only because the object ends before it begins."""
    return any(mark in str(error) for mark in _BEYOND_END)


class ErrorTranslator:
    """Makes the errors of one storage.

    Args:
        uri: the storage, without credentials.
        secrets: values that no message may repeat.
    """

    def __init__(self, uri: str, secrets: Iterable[str] = ()) -> None:
        self._uri = uri
        # Longest first, so that a secret inside another one leaves no remainder.
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def translate(self, error: Exception, doing: str, name: str) -> WeirflowError:
        """The error to raise instead, ``from None``: the original may hold what servers echo."""
        uri = f"{self._uri.rstrip('/')}/{name}" if name else self._uri
        text = str(error)
        match error:
            case obstore_errors.AlreadyExistsError():
                return ObjectExists(f"{uri} exists already; it was not touched.", uri=uri)
            case obstore_errors.PreconditionError():
                return ObjectChanged(
                    f"{uri} was changed by another writer, or is gone; nothing was written.",
                    uri=uri,
                    hint="read it again, then decide",
                )
            case FileNotFoundError() if doing == "write" or any(mark in text for mark in _NO_BUCKET):
                return StorageError(f"{uri}: the bucket or container does not exist.", uri=uri, hint=_BUCKET_HINT)
            case FileNotFoundError():
                return ObjectNotFound(f"{uri} does not exist.", uri=uri)
            case obstore_errors.NotSupportedError():
                return UnsupportedError(f"{uri}: this store cannot {doing} so: {self.summary(text)}.")
            case obstore_errors.PermissionDeniedError() | obstore_errors.UnauthenticatedError():
                hint = _REFUSED_HINT
            case _:
                hint = _hint(text)
        return StorageError(f"Could not {doing} {uri}: {self.summary(text)}.", uri=uri, hint=hint)

    def summary(self, text: str) -> str:
        """The first line of obstore's message and the server's error code; no body, query or secret."""
        code = _SERVER_CODE.search(text)
        line = re.split(r"[\n<{]", text, maxsplit=1)[0]
        line = _USER.sub("//***@", _QUERY.sub("", line)).strip(" .:-")
        for secret in self._secrets:
            line = line.replace(secret, "***")
        return f"{line} ({code[1]})" if code else line


def _hint(text: str) -> str:
    if any(mark in text for mark in _NO_BUCKET):
        return _BUCKET_HINT
    # Listing reports these only in words.
    if "401 Unauthorized" in text or "403 Forbidden" in text:
        return _REFUSED_HINT
    if "builder error" in text:
        return _HTTP_HINT
    return _UNREACHABLE_HINT
