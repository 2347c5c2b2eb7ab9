"""What the host of the web app decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tenure.model.errors import ConfigError
from tenure.web.security.principal import Principal
from tenure.web.security.secret_names import SECRET_NAMES

Authorize = Callable[[HTTPConnection], "Awaitable[Principal | None] | Principal | None"]
"""Returns who makes the request, or None for a stranger."""


@dataclass(frozen=True, kw_only=True)
class WebOptions:
    authorize: Authorize | None = None
    """Asked for requests without a token of Tenure: to accept users of the host application."""

    open_locally: bool = False
    """Requests from this machine may do everything until a token is created. Only for a server that listens on loopback."""

    allowed_hosts: Sequence[str] | None = None
    """Names in the Host header that are accepted besides loopback names and IP addresses. None: the host application checks."""

    allowed_origins: Sequence[str] = ()
    """Origins of other sites whose pages may use the API with a token, such as `https://shop.example`. Exact; never `*`."""

    read_only: bool = False
    """Refuse everything that changes something."""

    secret_names: Sequence[str] = SECRET_NAMES
    """Values under these names are hidden in everything that is shown."""

    rate: float = 100.0
    """Requests per second of each token or user, in each process. Twice as many may come at once. 0: not limited."""

    address_rate: float = 1000.0
    """The same for each address, before it is known who asks; of IPv6, each /64. Not for loopback, static files and probes."""

    session_hours: float = 12.0
    """How long a browser stays signed in."""

    def __post_init__(self) -> None:
        for origin in self.allowed_origins:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query or "*" in origin:
                raise ConfigError(f"{origin!r} is not an origin: give scheme, host and port only, such as 'https://shop.example'")
        if isinstance(self.allowed_hosts, str) or isinstance(self.allowed_origins, str):
            raise ConfigError("allowed_hosts and allowed_origins are lists: give ['shop.example']")
        if self.rate < 0 or self.address_rate < 0 or self.session_hours <= 0:
            raise ConfigError("rate and address_rate must not be negative, and session_hours must be positive")
