"""A step: what is sent, how its answer is read, and what it may change in a given world."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tenure.store.query import Query
from tenure.store.statements import statement
from tests.interleavings.sessions import Call, Reply
from tests.interleavings.world import World

Words = tuple[str, ...]


class Change(NamedTuple):
    """One thing that a statement may change or answer."""

    word: str | None
    """What the statement answers when it has done it; None if its answer does not show it."""
    then: Callable[[World], World | None] = lambda world: world
    """The world after it; None where that is not possible."""
    skips: bool = False
    """It is left out if another session holds the row at that moment. Other changes are never left out."""
    firm: bool = True
    """It must still be right when its transaction commits. Otherwise it must have been right when the statement ran."""


@dataclass(frozen=True)
class Step:
    label: str
    sends: Query | Call
    read: Callable[[Reply], Words]
    changes: Callable[[World], list[Change]]
    locks: frozenset[str] = frozenset()
    """The rows that it keeps from others until its transaction ends."""
    waits: frozenset[str] = frozenset()
    """The rows for which it waits while others have them. It waits for no others."""
    refusals: dict[str, str] = field(default_factory=dict)
    """SQLSTATEs that are answers."""
    resend_if_empty: bool = False
    """Sent once more if its answer is empty, as settling does: a heartbeat may have changed the row in between."""
    if_previous_changed: bool = False
    """Sent only if the statement before it in its transaction has changed something."""
    repeats: str | None = None
    """The label of a step whose answer was lost: this one is sent after it, if that one is sent at all."""

    @cached_property
    def call(self) -> Call:
        return self.sends if isinstance(self.sends, Call) else call(self.sends, spelled(self.sends.name))

    def answer(self, reply: Reply) -> Words:
        if reply.fault is None:
            return self.read(reply)
        return (self.refusals.get(reply.fault) or f"error {reply.fault}: {reply.words.partition(chr(10))[0]}",)


@dataclass(frozen=True)
class End:
    """The end of a transaction."""

    label: str
    commits: bool
    if_previous_changed: bool = False
    """Commits only if the statement before it changed something, as `ctx.transaction()` does."""


@dataclass(frozen=True)
class Wait:
    """Time passes for all sessions."""

    seconds: int

    @property
    def label(self) -> str:
        return f"{self.seconds} seconds pass"


JOB, CLAIM, QUEUE, LEASE, KEY, LIMIT = "job", "claim", "queue", "lease", "key", "limit"
"""Rows. Workers' go by their names."""

COMMIT = End("commit", commits=True)
ROLLBACK = End("rollback", commits=False)
COMMIT_IF_SETTLED = End("commit, or roll back if nothing was settled", commits=True, if_previous_changed=True)

AnyStep = Step | End | Wait
Script = tuple[AnyStep, ...]

_PLACEHOLDER = re.compile(r"%%|%\((\w+)\)s")


def call(query: Query, text: str) -> Call:
    """The statement with `$1` for its first parameter, and so on."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    sql = _PLACEHOLDER.sub(number, text)
    return Call(sql, tuple(_wire(query.values[name]) for name in names))


def spelled(name: str) -> str:
    return statement(name, "tenure")


def _wire(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()


def rows(*names: str) -> frozenset[str]:
    return frozenset(names)


def counted(reply: Reply, word: str) -> Words:
    """For statements that answer with nothing but the number of rows."""
    return (word,) * reply.touched


def times(number: str | None, word: str) -> Words:
    return (word,) * int(number or 0)
