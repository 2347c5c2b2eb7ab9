"""Chance that is none: what is drawn from a seed is the same on every machine, in handlers and in expectations."""

from __future__ import annotations

import zlib
from random import Random

_WRAP = 2**32


def fraction(seed: int, what: str) -> float:
    """From [0, 1), another one for each purpose."""
    return zlib.crc32(f"{what} {seed}".encode()) / _WRAP


def milliseconds(seed: int, what: str, *, least: int, most: int) -> int:
    return least + int(fraction(seed, what) * (most - least))


def checksum(seed: int, rounds: int) -> int:
    """Arithmetic that no one can shorten."""
    value = seed % _WRAP
    for turn in range(rounds):
        value = (value * 1_664_525 + 1_013_904_223 + turn) % _WRAP
    return value


def noise(seed: int, kib: int) -> str:
    """So much of it, and too wild for the database to compress."""
    return Random(seed).randbytes(kib * 512).hex()  # noqa: S311 - chance that is none
