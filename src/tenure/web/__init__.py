"""The web server: REST under `/_api`, live updates by WebSocket and Server-Sent Events, and metrics.

Closed by default: without a token, a session or the hook of the host application nothing is answered but the probes.

- `route_table`: every route, in one table; `api_routes` what a route is, `api/` their handlers
- `pipeline`: what every request passes through; `security/` its checks; `problems` its errors; `openapi` its description
- `live/`: subscriptions, one look-up for all viewers; `fleet_stats` and `metrics`: counts that all viewers share
- `static_files`: the tracker for pages
- `web_app`: the ASGI app; `services` what it holds for each event loop; `server` runs it for `tenure web`
"""

from tenure.web.security.principal import Principal, Scope
from tenure.web.token_admin import create_token, list_tokens, revoke_token, tracker_token
from tenure.web.web_app import WebApp, create_app

__all__ = ["Principal", "Scope", "WebApp", "create_app", "create_token", "list_tokens", "revoke_token", "tracker_token"]
