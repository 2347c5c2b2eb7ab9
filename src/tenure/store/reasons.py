"""Why PostgreSQL cannot do something now: a name and a way out for each reason, and how it is recognized."""

from __future__ import annotations

import re
from typing import NamedTuple


class RefusalReason(NamedTuple):
    cause: str
    """One word, for the log."""
    what: str
    way_out: str = ""
    lasting: bool = False
    """A person must act: waiting does not help."""

    def text(self, words: str) -> str:
        return f"{self.what}: {words}" + (f"; {self.way_out}" if self.way_out else "")


LOST = RefusalReason("connection", "PostgreSQL cannot be reached")
CONFLICT = RefusalReason("conflict", "another transaction was in the way")
FILES = RefusalReason("files", "PostgreSQL has a problem with its files", "see the server's log")
LOCK = RefusalReason(
    "lock", "a lock was not granted in time", "find who holds it: select pid, pg_blocking_pids(pid), query from pg_stat_activity"
)
LOGIN = RefusalReason(
    "authentication", "PostgreSQL rejects the login", "check user and password in the DSN, and pg_hba.conf on the server", True
)
MANY = RefusalReason(
    "too_many_connections", "PostgreSQL has no connection left", "raise max_connections, start fewer processes, or use a pooler"
)
NO_DATABASE = RefusalReason("unknown_database", "the database does not exist", "check the DSN, or create the database", True)
NO_ROLE = RefusalReason("unknown_role", "the role does not exist", "check the user in the DSN, or create the role", True)
NOT_ALLOWED = RefusalReason("permission", "PostgreSQL rejects the connection", "grant connect on the database to this role", True)
OPTIONS = RefusalReason(
    "pooler",
    "a pooler (PgBouncer) is in between and rejects the connection",
    "set pooled = true, or add ?pgbouncer=true to the DSN",
    True,
)
PREPARED = RefusalReason(
    "pooler",
    "prepared statements of other connections are in the way, probably because of a transaction pooler in between",
    "set pooled = true, or add ?pgbouncer=true to the DSN",
)
# For the rest of the code an outage like any other, hence the same cause.
RECOVERING = LOST._replace(what="PostgreSQL is in recovery")
SHUTTING_DOWN = LOST._replace(what="PostgreSQL is shutting down")
STARTING = LOST._replace(what="PostgreSQL is starting up")
STALE_PLAN = RefusalReason("stale_plan", "a table has changed since the statement was prepared")
TLS = RefusalReason("tls", "PostgreSQL and the DSN do not agree about encryption", "check sslmode in the DSN", True)

# After these the same statement may succeed later.
BY_CODE = {
    "25006": RefusalReason(
        "read_only", "this PostgreSQL is read-only", "connect to the primary, or wait until it accepts writes"
    ),
    "25P03": LOST,  # this process was stopped for a moment inside a transaction, and the server ended the session
    "25P04": LOST,
    "26000": PREPARED,
    "28000": LOGIN,
    "28P01": LOGIN,
    "3D000": NO_DATABASE,
    "40001": CONFLICT,
    "40003": LOST,
    "40P01": CONFLICT,
    "42P05": PREPARED,
    "53100": RefusalReason("disk_full", "the disk of PostgreSQL is full", "free space on the server"),
    "53200": RefusalReason("memory", "PostgreSQL is out of memory", "see work_mem, shared_buffers and max_connections"),
    "53300": MANY,
    "55P03": LOCK,
    "57014": RefusalReason("canceled", "PostgreSQL canceled the statement", "see statement_timeout, and who cancels statements"),
}
BY_CLASS = {
    "08": LOST,
    "53": RefusalReason("resources", "PostgreSQL has reached a limit of its configuration", "see the server's log"),
    "57P": LOST,
    "58": FILES,
}

CANNOT_CONNECT_NOW = "57P03"
"""One code for several reasons, which only the text tells apart."""

# An error of connecting has no code in libpq, only a text.
_BY_WORDS = (
    (re.compile(r"database system is starting up", re.IGNORECASE), STARTING),
    (re.compile(r"database system is shutting down", re.IGNORECASE), SHUTTING_DOWN),
    (re.compile(r"database system is (in recovery mode|not (yet )?accepting connections)", re.IGNORECASE), RECOVERING),
    (re.compile(r"refused|time(d )?out|starting up|shutting down|recovery mode|not yet accepting", re.IGNORECASE), LOST),
    (re.compile(r"too many (clients|connections)|remaining connection slots|no more connections allowed", re.IGNORECASE), MANY),
    (re.compile(r'database "[^"]*" does not exist|no such database', re.IGNORECASE), NO_DATABASE),
    (re.compile(r'role "[^"]*" does not exist|no such user', re.IGNORECASE), NO_ROLE),
    (re.compile(r"permission denied for database", re.IGNORECASE), NOT_ALLOWED),
    (re.compile(r"unsupported startup parameter|command-line options", re.IGNORECASE), OPTIONS),
    (re.compile(r"authentication failed|no password supplied|pg_hba\.conf|not permitted to log in", re.IGNORECASE), LOGIN),
    (re.compile(r"SSL was required|does not support SSL|certificate", re.IGNORECASE), TLS),
)


def by_code(sqlstate: str) -> RefusalReason | None:
    return BY_CODE.get(sqlstate) or next((reason for start, reason in BY_CLASS.items() if sqlstate.startswith(start)), None)


def by_words(words: str) -> RefusalReason:
    """For errors of connecting. With several hosts, one that is merely unreachable decides: it may be reachable later."""
    return next((reason for pattern, reason in _BY_WORDS if pattern.search(words)), LOST)
