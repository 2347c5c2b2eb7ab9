"""Who makes a request, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from tenure.model.errors import ConfigError
from tenure.model.names import is_builtin
from tenure.web.problems import Problem


class Scope(StrEnum):
    """Each includes those before it."""

    READ = "read"
    OPERATE = "operate"
    """Enqueue, cancel, retry and replay jobs, pause queues and schedules."""
    ADMIN = "admin"
    """Change limits and schedules, delete jobs, read the audit log."""

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


Via = Literal["token", "session", "tracker", "local", "hook"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request. An `authorize` hook of the host application returns one."""

    name: str
    """Recorded as the actor of every change."""
    scope: Scope = Scope.READ
    queues: frozenset[str] | None = None
    """None: all queues."""
    kinds: frozenset[str] | None = None
    """None: all kinds."""
    auth: Any = None
    """Stored with jobs that they enqueue; the handler reads it as `ctx.auth`."""
    rate: float | None = None
    """Requests per second. None: the default; 0: not limited."""
    job_id: UUID | None = None
    """Access to this one job only."""
    may_cancel: bool = False
    """With `job_id`: that job may be canceled."""
    via: Via = "hook"
    token_id: UUID | None = None
    parent_id: UUID | None = None
    """Of a session: the token that it was started with."""
    secret: str | None = None
    """Of a session: its CSRF token."""

    def __post_init__(self) -> None:
        """A text instead of a set would include every queue whose name is a part of it."""
        if isinstance(self.queues, str) or isinstance(self.kinds, str):
            raise ConfigError(f"the limits of {self.name!r} are not sets: give queues=frozenset({{'mail'}})")
        object.__setattr__(self, "scope", Scope(self.scope))

    @property
    def limited(self) -> bool:
        """Sees only a part of the jobs."""
        return self.queues is not None or self.kinds is not None or self.job_id is not None

    @property
    def account(self) -> str:
        """Under which requests and connections are counted. Sessions count as their token, which can start any number."""
        return f"token {self.parent_id or self.token_id}" if self.token_id is not None else f"{self.via} {self.name}"

    def sees(self, *, kind: str, queue: str) -> bool:
        """Jobs of built-in kinds are in one queue and act on all of them: limited users see none."""
        if self.kinds is None and self.queues is None:
            return True
        if is_builtin(kind):
            return False
        return (self.kinds is None or kind in self.kinds) and (self.queues is None or queue in self.queues)

    def require(self, scope: Scope) -> None:
        if not self.scope.includes(scope):
            raise Problem(403, "scope", f"this needs the scope {scope.value!r}, and {self.name!r} has {self.scope.value!r}: "
                          "use another token")  # fmt: skip

    def require_whole(self) -> None:
        """For what is about all queues and kinds."""
        if self.limited:
            raise Problem(403, "limited", f"{self.name!r} is limited to some queues, kinds or jobs: use a token without limits")

    def require_filter(self, *, kind: str | None, queue: str | None) -> None:
        """For actions by filter: it must not reach beyond what they may see."""
        if self.kinds is not None and kind not in self.kinds:
            raise Problem(403, "limited", f"this token is limited to some kinds: give one of {', '.join(sorted(self.kinds))}")
        if self.queues is not None and queue not in self.queues:
            raise Problem(403, "limited", f"this token is limited to some queues: give one of {', '.join(sorted(self.queues))}")


LOCAL = Principal(name="local", scope=Scope.ADMIN, via="local", rate=0)
"""A request from this machine to a server for which no token was created yet."""
