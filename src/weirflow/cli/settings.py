"""Every setting with its variable, its value and its meaning; secrets are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from weirflow.config import Settings
from weirflow.environment import ENV_PREFIX

MASK = "***"
# What Spark itself takes for a secret in its configuration.
_SECRET_NAME = re.compile(r"secret|password|passphrase|token|credential|access[.]?key", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_URL_PARAMETERS = re.compile(r"([;?]).*", re.DOTALL)


@dataclass(frozen=True)
class SettingRow:
    """One setting, ready to be shown; ``value`` is None when it is not set."""

    name: str
    variable: str
    value: str | None
    description: str


def shown_settings(settings: Settings | None) -> list[SettingRow]:
    """All settings; without values when there are none because they cannot be used."""
    return [
        SettingRow(
            name=name,
            variable=ENV_PREFIX + name.upper(),
            value=None if settings is None else _shown(getattr(settings, name)),
            description=field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]


def _shown(value: Any) -> str | None:
    match value:
        case None:
            return None
        case SecretStr():
            return MASK
        case dict():
            return _shown_conf(value) or None
        case tuple():
            return ",".join(map(str, value)) or None
        case bool():
            return str(value).lower()
        case _:
            text = str(value)
            return _URL_PARAMETERS.sub(rf"\1{MASK}", _USER_IN_URL.sub(f"{MASK}@", text)) if "://" in text else text


def _shown_conf(conf: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name}={MASK if _SECRET_NAME.search(name) else _shown(value)}" for name, value in sorted(conf.items())
    )
