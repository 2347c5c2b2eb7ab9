"""Signed, short-lived access to one job: a back end hands it to the page of the user who started the job.

Nothing is stored for each of them. The signing key is made for each installation and kept in the database, so that every process
that serves it accepts what the others signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tenure.model.ids import uuid7
from tenure.store import tokens
from tenure.store.query import Fetch
from tenure.store.tokens import SigningKeyRow
from tenure.web.security.principal import Principal, Scope

TRACKER = "tnt_"
LONGEST_LIFE = 24 * 3600.0  # seconds
LONGEST_TEXT = 500
RECHECK = 60.0
"""Seconds after which the keys are read again."""


@dataclass(frozen=True, slots=True)
class TrackerToken:
    token: str
    expires_at: float
    """Seconds since 1970."""


class TrackerSigner:
    def __init__(self, read: Fetch, write: Fetch) -> None:
        self._read = read
        self._write = write
        self._keys: list[SigningKeyRow] = []
        self._read_at = -RECHECK

    async def sign(self, job_id: UUID, seconds: float, *, may_cancel: bool) -> TrackerToken:
        keys = await self._current()
        if not keys:
            await self._write(tokens.create_signing_key(uuid7(), secrets.token_urlsafe(32)))
            keys = await self._current(again=True)
        expires = time.time() + min(seconds, LONGEST_LIFE)
        claims = {"job": str(job_id), "exp": int(expires), "cancel": may_cancel, "key": str(keys[0].id)}
        body = _encoded(json.dumps(claims, separators=(",", ":")).encode())
        return TrackerToken(f"{TRACKER}{body}.{_signature(keys[0], body)}", float(int(expires)))

    async def find(self, token: str) -> Principal | None:
        """None: it was not signed here, or has expired."""
        body, _, signature = token.removeprefix(TRACKER).partition(".")
        if len(token) > LONGEST_TEXT or not token.startswith(TRACKER):
            return None
        claims = _claims(body)
        key = await self._key(claims.get("key"))
        if key is None or not hmac.compare_digest(_signature(key, body).encode(), signature.encode()):
            return None
        # Signed by us from here on.
        if claims["exp"] < time.time():
            return None
        return Principal(
            name=f"tracker {claims['job']}",
            job_id=UUID(claims["job"]),
            may_cancel=claims["cancel"],
            scope=Scope.READ,
            via="tracker",
        )

    async def _key(self, key_id: object) -> SigningKeyRow | None:
        for again in (False, True):
            for key in await self._current(again=again):
                if str(key.id) == key_id:
                    return key
            if time.monotonic() - self._read_at < 1:
                break  # just read
        return None

    async def _current(self, *, again: bool = False) -> list[SigningKeyRow]:
        age = time.monotonic() - self._read_at
        if not self._keys or age > RECHECK or (again and age > 1):
            self._keys = await self._read(tokens.find_signing_keys())
            self._read_at = time.monotonic()
        return self._keys


def _claims(body: str) -> dict[str, Any]:
    try:
        read = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, NotBase64, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _signature(key: SigningKeyRow, body: str) -> str:
    return _encoded(hmac.new(key.secret.encode(), b"tenure tracker " + body.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
