"""Opening S3, Google and Azure storage: what the URI and the options may say, and how long to wait."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import obstore.store
from obstore import exceptions as obstore_errors

from weirflow.checkpoint.storage.names import is_name
from weirflow.checkpoint.storage.objects.errors import ErrorTranslator
from weirflow.checkpoint.storage.objects.storage import ObjectStoreStorage
from weirflow.errors import ConfigError, did_you_mean

# A dead endpoint is an error within about ten seconds: the last attempt starts before _RETRY_FOR has passed.
_RETRY_FOR = timedelta(seconds=5)
_CONNECT_WITHIN = timedelta(seconds=3)
_ANSWER_WITHIN = timedelta(seconds=8)
# obstore counts the time to send a request's body as time without an answer, so big bodies get longer.
_ANSWER_BULK_WITHIN = timedelta(minutes=5)
# obstore's limit on a whole request would cut long downloads; the limits above find dead peers without it.
_WHOLE_REQUEST = timedelta(days=1)

_RETRY = {
    "max_retries": 6,
    "retry_timeout": _RETRY_FOR,
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}

# Options of the HTTP client. obstore takes them apart from those of the store, and panics otherwise.
_CLIENT_OPTIONS = (
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only"),
    *("http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "proxy_ca_certificate", "proxy_excludes"),
    *("randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent"),
)
_PROVIDERS = {"s3": "aws_", "gs": "google_", "az": "azure_", "abfs": "azure_", "abfss": "azure_"}

# For suggestions only: obstore decides what is known.
_COMMON_OPTIONS = (
    *("access_key_id", "secret_access_key", "session_token", "region", "endpoint", "skip_signature"),
    *("service_account", "service_account_key", "application_credentials", "bearer_token", "base_url"),
    *("account_name", "account_key", "sas_key", "client_id", "client_secret", "tenant_id", "use_emulator"),
    *_CLIENT_OPTIONS,
)
_SECRET_MARKS = ("key", "secret", "token", "sas", "password", "credential")
_PLACE_MARKS = ("bucket", "container_name")


def open_remote(uri: str, options: Mapping[str, str]) -> ObjectStoreStorage:
    """The storage in a bucket or container; nothing is contacted yet.

    Raises:
        ConfigError: the URI or an option cannot be used. Secrets in them are not repeated.
    """
    scheme, authority, folder = _split(uri)
    _check_options(options)
    shown = f"{scheme}://{authority}" + (f"/{folder}" if folder else "")
    errors = ErrorTranslator(shown, [value for key, value in options.items() if _is_secret(key)])
    base = f"{scheme}://{authority}"
    return ObjectStoreStorage(
        shown,
        _store(base, options, _ANSWER_WITHIN, errors),
        bulk=_store(base, options, _ANSWER_BULK_WITHIN, errors),
        folder=folder,
        errors=errors,
        # Google compares generations, the others ETags.
        version_field="version" if scheme == "gs" else "e_tag",
    )


def _split(uri: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(uri)
        container, _, host = parts.netloc.rpartition("@")
    except ValueError:
        raise ConfigError("The storage URI cannot be parsed.", hint="write s3://bucket/prefix") from None
    scheme = parts.scheme.lower()
    # abfss://container@account.dfs.core.windows.net is the one form in which '@' is not about credentials.
    if (container and not scheme.startswith("abfs")) or ":" in parts.netloc or "@" in container:
        raise ConfigError(
            f"A {scheme}:// URI holds no credentials and no port.",
            hint="give credentials and endpoint as options, or in the environment",
        )
    if parts.query or parts.fragment or "?" in uri or "#" in uri:
        raise ConfigError(f"A {scheme}:// URI holds no query and no fragment.", hint="give a SAS token as an option")
    folder = parts.path.strip("/")
    if not host or (folder and not is_name(folder)):
        raise ConfigError(
            f"This {scheme}:// URI does not name a bucket and a plain folder.",
            hint=f"write {scheme}://bucket/prefix",
        )
    return scheme, parts.netloc, folder


def _check_options(options: Mapping[str, str]) -> None:
    for key, value in options.items():
        if not isinstance(value, str):
            raise ConfigError(f"The storage option {key!r} must be a string, not {type(value).__name__}.")
        if key.lower().endswith(_PLACE_MARKS) or "bucket_name" in key.lower():
            raise ConfigError(f"The storage option {key!r} would contradict the URI.", hint="name it in the URI only")
        # A URL among the options (an endpoint, a proxy) may be shown in errors.
        if "://" in value and "@" in urlsplit(value).netloc:
            raise ConfigError(f"The storage option {key!r} is a URL that holds credentials.")


def _is_secret(key: str) -> bool:
    return any(mark in key.lower() for mark in _SECRET_MARKS)


def _store(base: str, options: Mapping[str, str], answer_within: timedelta, errors: ErrorTranslator) -> Any:
    client: dict[str, str | timedelta] = {
        "connect_timeout": _CONNECT_WITHIN,
        "read_timeout": answer_within,
        "timeout": _WHOLE_REQUEST,
    }
    provider = _PROVIDERS[base.partition(":")[0]]
    # Given client options, obstore no longer looks for them in the environment.
    for name in _CLIENT_OPTIONS:
        if (set_outside := os.environ.get((provider + name).upper())) is not None:
            client[name] = set_outside
    config = {}
    for key, value in options.items():
        plain = key.lower().removeprefix(provider)
        if plain in _CLIENT_OPTIONS:
            client[plain] = value
        else:
            config[key] = value
    try:
        return obstore.store.from_url(  # type: ignore[call-overload]  # its overloads are per scheme
            base, config=config, client_options=client, retry_config=_RETRY
        )
    except obstore_errors.UnknownConfigurationKeyError as error:
        unknown = next((key for key in options if f"'{key}'" in str(error)), "one of them")
        raise ConfigError(
            f"The storage option {unknown!r} is not known for {base}.",
            hint=did_you_mean(unknown, _COMMON_OPTIONS) or "the documentation lists the common options",
        ) from None
    except (obstore_errors.BaseError, ValueError, TypeError) as error:
        raise ConfigError(
            f"The options for {base} cannot be used: {errors.summary(str(error))}.",
            hint="check the values; settings from the environment count too",
        ) from None
