"""The statements about tokens of the web API, their sessions and the keys that sign access to single jobs, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from tenure.store.audit import AuditSource
from tenure.store.query import BOOLEAN, Query, Scalar, array_literal

Purpose = Literal["api", "session"]

IDS = Scalar[UUID]()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token to be stored. The token itself is known only to its owner."""

    id: UUID
    hash: str
    name: str
    scope: str
    purpose: Purpose = "api"
    queues: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    rate: float | None = None
    seconds: float | None = None
    """How long it is in force; None: until it is revoked."""
    by: str | None = None
    parent_id: UUID | None = None


class TokenRow(NamedTuple):
    """A token that is in force."""

    id: UUID
    parent_id: UUID | None
    """Of a session: the api token that it was started with."""
    name: str
    purpose: Purpose
    scope: str
    queues: list[str] | None
    kinds: list[str] | None
    rate: float | None
    seconds_left: float | None
    """Until it expires, or the api token of a session does. None: never."""
    unused: bool
    """Its last use was noted more than five minutes ago."""


class ListedTokenRow(NamedTuple):
    id: UUID
    name: str
    scope: str
    queues: list[str] | None
    kinds: list[str] | None
    rate: float | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    active: bool


class SigningKeyRow(NamedTuple):
    id: UUID
    secret: str


def create(token: NewToken, source: AuditSource | None = None) -> Query[None]:
    """With a source, it is recorded in the audit log as well."""
    values = {
        "id": str(token.id),
        "hash": token.hash,
        "name": token.name,
        "purpose": token.purpose,
        "scope": token.scope,
        "queues": _names(token.queues),
        "kinds": _names(token.kinds),
        "rate": token.rate,
        "by": token.by,
        "seconds": token.seconds,
        "parent_id": None if token.parent_id is None else str(token.parent_id),
        "source": source,
    }
    return Query("tokens/create_token", None, values)


def find(hash_: str) -> Query[TokenRow]:
    return Query("tokens/find_token", TokenRow, {"hash": hash_})


def touch(token_id: UUID) -> Query[None]:
    return Query("tokens/touch_token", None, {"id": str(token_id)})


def list_all(*, limit: int, revoked: bool) -> Query[ListedTokenRow]:
    return Query("tokens/list_tokens", ListedTokenRow, {"limit": limit, "all": revoked})


def revoke(which: str, by: str | None, source: AuditSource | None = None) -> Query[UUID]:
    """`which` is an id or a name. Returns the ids of the tokens that were in force. With a source, it is recorded in the audit
    log as well."""
    return Query("tokens/revoke_tokens", IDS, {"which": which, "by": by, "source": source})


def exist() -> Query[bool]:
    return Query("tokens/has_tokens", BOOLEAN)


def clean_sessions() -> Query[None]:
    return Query("tokens/clean_sessions", None)


def find_signing_keys() -> Query[SigningKeyRow]:
    return Query("tokens/find_signing_keys", SigningKeyRow)


def create_signing_key(key_id: UUID, secret: str, *, rotate: bool = False) -> Query[None]:
    return Query("tokens/create_signing_key", None, {"id": str(key_id), "secret": secret, "rotate": rotate})


def _names(names: Sequence[str] | None) -> str | None:
    return None if names is None else array_literal(list(names))
