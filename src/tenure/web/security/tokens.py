"""Tokens: 256 random bits that only their owner has. The database has their SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from tenure.model.errors import ConfigError, StoreUnavailable
from tenure.model.ids import uuid7
from tenure.store import tokens
from tenure.store.faults import Refused
from tenure.store.query import Fetch
from tenure.store.tokens import NewToken, TokenRow
from tenure.web.security.principal import Principal, Scope

API, SESSION = "tnr_", "tns_"
"""What tokens begin with, so that they are recognized in logs and by secret scanners."""

RECHECK = 10.0
"""Seconds for which an answer of the database about a token is used again, unless the token expires before. A revoked one stops
working within that time."""

OPEN_RECHECK = 1.0
"""Seconds for which an open server may be read without a token after the first one was created. Nothing can be changed."""

MOST_KNOWN = 10_000


def new_token(prefix: str = API) -> str:
    return prefix + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def csrf_of(session: str) -> str:
    """Derived from the session, so that nothing more is stored. A page cannot read the cookie, and gets this from the API."""
    return urlsafe_b64encode(hashlib.sha256(b"tenure csrf " + session.encode()).digest()).decode().rstrip("=")


def api_token(
    name: str,
    scope: str,
    *,
    queues: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    rate: float | None = None,
    seconds: float | None = None,
    by: str | None = None,
) -> tuple[str, NewToken]:
    """A new token, and what is stored of it. Raises `ConfigError`."""
    if not name or not name.isprintable() or len(name.encode()) > 200:
        raise ConfigError(f"{name[:50]!r} cannot be the name of a token: give 1 to 200 bytes of printable text")
    token = new_token()
    return token, NewToken(
        id=uuid7(), hash=hash_of(token), name=name, scope=Scope(scope).value, queues=queues, kinds=kinds, rate=rate,
        seconds=seconds, by=by,
    )  # fmt: skip


class _Answer(NamedTuple):
    """Of the database about a token."""

    until: float
    """By the monotonic clock: when it must be asked again."""
    principal: Principal | None


class TokenKeeper:
    """Finds the principal of a token, and remembers it for a few seconds."""

    def __init__(self, read: Fetch, write: Fetch) -> None:
        self._read = read
        self._write = write
        self._known: OrderedDict[str, _Answer] = OrderedDict()
        self._any: tuple[float, bool] = (-OPEN_RECHECK, False)

    def remembered(self, token: str) -> bool:
        """It was valid before, or the answer is known: wrong guesses of the same address must not lock it out."""
        kept = self._known.get(hash_of(token))
        return kept is not None and (kept.principal is not None or time.monotonic() < kept.until)

    async def find(self, token: str) -> Principal | None:
        """None: the token is not in force."""
        hashed = hash_of(token)
        kept = self._known.get(hashed)
        if kept is None or time.monotonic() >= kept.until:
            asked = time.monotonic()
            rows = await self._read(tokens.find(hashed))
            kept = _answer(rows[0], token, asked) if rows else _Answer(time.monotonic() + RECHECK, None)
            self._keep(hashed, kept)
            if rows and rows[0].unused:
                await self._touch(rows[0].id)
        return kept.principal

    async def none_exist(self, *, for_change: bool) -> bool:
        """No api token was ever created. One that has ended still counts, so that a server is not open again after the last."""
        at, found = self._any
        if not found and (for_change or time.monotonic() - at >= OPEN_RECHECK):
            [found] = await self._read(tokens.exist())
            self._any = time.monotonic(), found
        return not found

    async def start_session(self, principal: Principal, seconds: float) -> str:
        """A token for the cookie of a browser, with the rights of the principal's own token."""
        session = new_token(SESSION)
        new = NewToken(
            id=uuid7(), hash=hash_of(session), name=principal.name, scope=principal.scope.value, purpose="session",
            queues=_listed(principal.queues), kinds=_listed(principal.kinds), rate=principal.rate, seconds=seconds,
            by=principal.name, parent_id=principal.token_id,
        )  # fmt: skip
        await self._write(tokens.clean_sessions())
        await self._write(tokens.create(new))
        return session

    async def end_session(self, session_id: UUID, by: str) -> None:
        await self._write(tokens.revoke(str(session_id), by))
        self._known.clear()

    def _keep(self, hashed: str, kept: _Answer) -> None:
        self._known[hashed] = kept
        self._known.move_to_end(hashed)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    async def _touch(self, token_id: UUID) -> None:
        with suppress(StoreUnavailable, Refused):  # only a note; a server that is read-only works without it
            await self._write(tokens.touch(token_id))


def _answer(row: TokenRow, token: str, asked: float) -> _Answer:
    """`asked` is the time before the statement: the token must not be used for longer than it is in force."""
    left = RECHECK if row.seconds_left is None else min(RECHECK, row.seconds_left)
    return _Answer(asked + left, _principal(row, token))


def _principal(row: TokenRow, token: str) -> Principal:
    return Principal(
        name=row.name,
        scope=Scope(row.scope),
        queues=None if row.queues is None else frozenset(row.queues),
        kinds=None if row.kinds is None else frozenset(row.kinds),
        rate=row.rate,
        via="token" if row.purpose == "api" else "session",
        token_id=row.id,
        parent_id=row.parent_id,
        secret=None if row.purpose == "api" else csrf_of(token),
    )


def same(given: str | None, expected: str | None) -> bool:
    """In constant time."""
    return given is not None and expected is not None and hmac.compare_digest(given.encode(), expected.encode())


def _listed(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
