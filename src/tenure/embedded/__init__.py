"""A private PostgreSQL in a folder, shared by the processes that need it and gone with the last of them.

For development, tests and demos. What this room promises:

- **It is a real server.** Binaries come from `TENURE_PG_BIN`, the wheel of the extra `embedded`, or the system.
- **Only you can reach it.** No TCP; one socket in a folder with mode 0700.
- **It touches its own folders only.** No account is made, and no permission changed, outside them. As root, the
  server runs as `postgres` or `nobody`; what that account cannot reach is copied (binaries) or kept elsewhere (data).
- **It is shared.** Every entry and exit happens under one `flock`. Holders are noted as pid and start time, so a
  reused pid is no holder; a server found without holders is adopted, never killed; the last one out stops it.
- **It never lingers.** A guardian process survives even SIGKILL of every holder, and stops the server two seconds
  later. If the guardian is killed too, the next entry starts another one.
- **It never destroys.** A folder that is not empty and lacks the marker is refused, as is another major version.
  `initdb` works in a sibling folder that is renamed when whole.

Not for production: there, give Tenure the DSN of a server that somebody backs up.
"""

from tenure.embedded.binaries import Binaries, find_binaries
from tenure.embedded.server import EmbeddedServer, ServerStatus

__all__ = ["Binaries", "EmbeddedServer", "ServerStatus", "find_binaries"]
