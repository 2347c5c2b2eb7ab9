"""Values drawn from a seed: the same on every machine, in handlers and in expectations."""

from __future__ import annotations

import zlib
from random import Random

_WRAP = 2**32


def fraction(seed: int, what: str) -> float:
    """In [0, 1), different for each purpose."""
    return zlib.crc32(f"{what} {seed}".encode()) / _WRAP


def milliseconds(seed: int, what: str, *, least: int, most: int) -> int:
    return least + int(fraction(seed, what) * (most - least))


def checksum(seed: int, rounds: int) -> int:
    """Arithmetic without a shortcut."""
    value = seed % _WRAP
    for turn in range(rounds):
        value = (value * 1_664_525 + 1_013_904_223 + turn) % _WRAP
    return value


def noise(seed: int, kib: int) -> str:
    """Text of this size that the database cannot compress."""
    return Random(seed).randbytes(kib * 512).hex()  # noqa: S311 - not for security
