"""A private PostgreSQL in a folder, shared by the processes that use it and stopped with the last of them.

For development, tests and demos. Guarantees of this package:

- **It is a real server.** The programs come from `TENURE_PG_BIN`, the wheel of the extra `embedded`, or the system.
- **Only you can reach it.** No TCP; one socket in a folder with mode 0700.
- **It changes only its own folders.** It creates no accounts, and changes no permissions elsewhere. As root, the
  server runs as `postgres` or `nobody`; what that account cannot reach is copied (programs) or stored elsewhere (data).
- **It is shared.** Processes join and leave under one `flock`. Holders are recorded with pid and start time, so a reused
  pid does not count as a holder. A server without holders is adopted, not killed; the last holder stops it.
- **It does not keep running.** A guardian process survives SIGKILL of all holders and stops the server two seconds later.
  If the guardian is killed too, the next process that joins starts another one.
- **It does not overwrite data.** A folder that is not empty and lacks the marker is rejected, as is another major version.
  `initdb` works in a sibling folder that is renamed when it is complete.

Not for production: there, set the DSN of a server with backups.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.embedded.binaries import Binaries, find_binaries
    from tenure.embedded.server import EmbeddedServer, ServerStatus

__all__ = ["Binaries", "EmbeddedServer", "ServerStatus", "find_binaries"]

# Imported when they are first used: every worker asks `finding` for a running server, and few have one.
_HOMES = {
    "Binaries": "tenure.embedded.binaries",
    "EmbeddedServer": "tenure.embedded.server",
    "ServerStatus": "tenure.embedded.server",
    "find_binaries": "tenure.embedded.binaries",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
