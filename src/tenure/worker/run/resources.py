"""What handlers share in one process: database pools and HTTP clients, made at first use and closed with the worker."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from tenure.model.errors import ConfigError
from tenure.store.target import DatabaseTarget

if TYPE_CHECKING:
    import httpx2

    from tenure.store.pools import Pools


class Resources:
    def __init__(self, database: DatabaseTarget, size: int) -> None:
        self.database = database
        self._size = size
        self._pools: Pools | None = None
        self._http: httpx2.AsyncClient | None = None
        self._http_sync: httpx2.Client | None = None
        self._lock = threading.Lock()

    @property
    def pools(self) -> Pools:
        with self._lock:
            if self._pools is None:
                from tenure.store.pools import Pools  # noqa: PLC0415 - only for handlers that ask for a connection

                self._pools = Pools(self.database, self._size)
        return self._pools

    def http(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = _httpx().AsyncClient()
        return self._http

    def http_sync(self) -> httpx2.Client:
        with self._lock:
            if self._http_sync is None:
                self._http_sync = _httpx().Client()
        return self._http_sync

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        if self._http_sync is not None:
            await asyncio.to_thread(self._http_sync.close)
        if self._pools is not None:
            await self._pools.close()


def _httpx() -> Any:
    try:
        import httpx2  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigError("ctx.http() needs httpx2: pip install 'tenure[http]'") from None
    return httpx2
