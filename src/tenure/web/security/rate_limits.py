"""How often a token or an address may ask. Counted in each process."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from dataclasses import dataclass

from tenure.web.problems import Problem

log = logging.getLogger("tenure")

MOST_KEYS = 10_000
"""Buckets that are kept; the least recently used ones are forgotten."""

FAILURES_PER_MINUTE = 5

SIGN_INS_PER_MINUTE = 30
"""Of a token, and as many at once: several people and browsers may share one. Each sign-in stores a session."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class RateLimiter:
    """Token buckets: `rate` per second, and `burst` at once."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str, rate: float, burst: float) -> float:
        """Returns 0 if it is allowed now, else the seconds until it is."""
        bucket, now = self._refilled(key, rate, burst)
        if bucket.left >= 1:
            bucket.left -= 1
            return 0.0
        return max(0.001, (1 - bucket.left) / rate - (now - bucket.at))

    def is_empty(self, key: str, rate: float, burst: float) -> bool:
        """Without taking anything."""
        return self._refilled(key, rate, burst)[0].left < 1

    def check(self, key: str, rate: float, burst: float, what: str = "more requests than are allowed") -> None:
        wait = self.take(key, rate, burst)
        if wait > 0:
            raise too_many(what, wait)

    def _refilled(self, key: str, rate: float, burst: float) -> tuple[_Bucket, float]:
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(burst, now)
            if len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
            bucket.left, bucket.at = min(burst, bucket.left + rate * (now - bucket.at)), now
        return bucket, now


class FailedLogins:
    """Refuses further guesses of an address after five wrong tokens in a minute. Tokens that are known to be right still work.

    The same wrong token again is not another guess: a program or a page has one that was revoked, or has expired.
    """

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._wrong: OrderedDict[int, None] = OrderedDict()
        """Hashes of tokens that were counted."""

    def check(self, address: str) -> None:
        if self._limiter.is_empty(f"failed {address}", FAILURES_PER_MINUTE / 60, FAILURES_PER_MINUTE):
            raise too_many("too many wrong tokens from this address", 60 / FAILURES_PER_MINUTE)

    def count(self, address: str, token: str) -> None:
        """Logged once for each wrong token, never with the token itself."""
        known = hash(token)
        if known not in self._wrong:
            self._wrong[known] = None
            log.warning("token refused", extra={"address": address})
            self._limiter.take(f"failed {address}", FAILURES_PER_MINUTE / 60, FAILURES_PER_MINUTE)
            if len(self._wrong) > MOST_KEYS:
                self._wrong.popitem(last=False)


def too_many(what: str, wait: float) -> Problem:
    seconds = str(math.ceil(wait))
    return Problem(429, "too-many-requests", f"{what}: wait {seconds} s and try again", headers={"Retry-After": seconds})
