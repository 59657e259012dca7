"""Arguments of public calls: signatures state what may be given, and ``checked`` holds callers to it.

The rule is the annotation: ``history: Count = 1000`` is an int, at least 0. What is given is looked at before the call
has done anything, and whatever is wrong is a ``ConfigError`` that names the argument. Names and numbers of arguments
stay Python's own business, with its ``TypeError``.
"""

from weirflow.arguments.checked import checked, require, rules_of
from weirflow.arguments.forms import (
    AnySize,
    AtLeast,
    AtMost,
    Count,
    Folder,
    Hint,
    Lifetime,
    Local,
    Location,
    MoreThan,
    Name,
    NotEmpty,
    Place,
    Positive,
    Seconds,
    Secret,
    Shards,
    Sql,
    Token,
    Uri,
)
from weirflow.arguments.in_errors import shown
from weirflow.arguments.overridden import require_plain_methods
from weirflow.arguments.rules import runs_later

__all__ = [
    "AnySize",
    "AtLeast",
    "AtMost",
    "Count",
    "Folder",
    "Hint",
    "Lifetime",
    "Local",
    "Location",
    "MoreThan",
    "Name",
    "NotEmpty",
    "Place",
    "Positive",
    "Seconds",
    "Secret",
    "Shards",
    "Sql",
    "Token",
    "Uri",
    "checked",
    "require",
    "require_plain_methods",
    "rules_of",
    "runs_later",
    "shown",
]
