"""Key groups: every key is in one of a fixed number of them, and groups are what moves when parallelism changes."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from weirflow.arguments import Positive, checked
from weirflow.errors import ConfigError

DEFAULT_GROUPS = 128
MOST_GROUPS = 32_768


@checked
def key_group(key_bytes: bytes, groups: Positive = DEFAULT_GROUPS) -> int:
    """The group of an encoded key: CRC-32 of its bytes, modulo the number of groups. It never changes.

    >>> key_group(b"ann"), key_group(b"bob")
    (115, 64)
    """
    return group_of(key_bytes, groups)


def group_of(key_bytes: bytes, groups: int) -> int:
    """``key_group``, for every row: of bytes and groups that were looked at before."""
    return crc32(key_bytes) % groups


@checked
@dataclass(frozen=True, order=True)
class KeyGroupRange:
    """The groups from ``first`` to ``end``, the end excluded."""

    first: int
    end: int

    def __post_init__(self) -> None:
        """Refuse what is not a range."""
        if not 0 <= self.first < self.end <= MOST_GROUPS:
            raise ConfigError(
                f"Key groups {self.first} to {self.end} are not a range.", hint=f"0 <= first < end <= {MOST_GROUPS}"
            )

    def __contains__(self, group: int) -> bool:
        return self.first <= group < self.end

    def __str__(self) -> str:
        return f"{self.first}-{self.end - 1}"

    def common(self, other: KeyGroupRange) -> KeyGroupRange | None:
        """The groups that are in both, or None."""
        first, end = max(self.first, other.first), min(self.end, other.end)
        return KeyGroupRange(first, end) if first < end else None

    @property
    def start_key(self) -> bytes:
        """The first stored key that may be in the range."""
        return self.first.to_bytes(2, "big")

    @property
    def end_key(self) -> bytes:
        """The first stored key after the range."""
        return self.end.to_bytes(2, "big")


@checked
def group_ranges(parallelism: Positive, groups: Positive = DEFAULT_GROUPS) -> list[KeyGroupRange]:
    """The key groups, divided into ``parallelism`` neighbouring ranges whose sizes differ by at most one.

    >>> [str(one) for one in group_ranges(3)]
    ['0-41', '42-84', '85-127']

    Raises:
        ConfigError: a range would have no group, or the number of groups cannot be used.
    """
    if not 1 <= groups <= MOST_GROUPS:
        raise ConfigError(f"{groups} key groups cannot be used.", hint=f"use 1 to {MOST_GROUPS}")
    if not 1 <= parallelism <= groups:
        raise ConfigError(
            f"{groups} key groups cannot be spread over {parallelism} ranges.",
            hint=f"use a parallelism of 1 to {groups}",
        )
    return [
        KeyGroupRange(part * groups // parallelism, (part + 1) * groups // parallelism) for part in range(parallelism)
    ]


def range_of(group: int, parallelism: Positive, groups: Positive = DEFAULT_GROUPS) -> int:
    """Which of the ranges of ``group_ranges`` has a group."""
    return ((group + 1) * parallelism - 1) // groups
