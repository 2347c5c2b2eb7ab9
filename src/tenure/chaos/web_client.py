"""Calls of a campaign's web server, with a token of the client's own."""

from __future__ import annotations

import asyncio
import json
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

from tenure.app import Tenure
from tenure.chaos.invariants.record import BY_CLIENTS
from tenure.model.errors import TenureError

TIMEOUT = 30.0  # seconds for an answer
RETRY_AFTER = 0.5

METHODS = {"delete": "DELETE"}
REPLIES = {"cancel": "canceled", "delete": "deleted", "retry": "id", "replay": "id"}
"""By verb: the field of the answer that reports what was done."""


class WebReply(NamedTuple):
    answer: str
    """As in `ClientCall`."""
    reply: Any = None
    unexpected: str | None = None
    """An answer that the server should never give."""


class WebClient:
    def __init__(self, app: Tenure, number: int, port: int) -> None:
        self._app = app
        self._port = port
        self._token: str | None = None
        self.actor = f"{BY_CLIENTS}{number}"

    async def open(self) -> None:
        """Creates the token. Returns when that is done: PostgreSQL may be away."""
        from tenure.web.token_admin import create_token  # noqa: PLC0415 - needs an extra, as the web server does

        while self._token is None:
            try:
                self._token = (await create_token(self._app, self.actor, "admin", rate=0)).token
            except TenureError:
                await asyncio.sleep(RETRY_AFTER)

    async def change(self, verb: str, job: str) -> WebReply:
        return await asyncio.to_thread(self._change, verb, job)

    def _change(self, verb: str, job: str) -> WebReply:
        path = f"/_api/jobs/{job}" + ("" if verb == "delete" else f"/{verb}")
        connection = HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT)
        try:
            connection.connect()
        except OSError:
            return WebReply("refused")  # it was not sent
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            connection.request(METHODS.get(verb, "POST"), path, "{}" if verb != "delete" else None, headers)
            response = connection.getresponse()
            return _reply(verb, response.status, response.read())
        except (OSError, HTTPException):
            return WebReply("unknown")
        finally:
            connection.close()


def _reply(verb: str, status: int, body: bytes) -> WebReply:
    if status < 300:
        return WebReply("ok", json.loads(body)[REPLIES[verb]])
    if status in (404, 409):
        return WebReply("refused")
    if status == 503:
        return WebReply("unknown")
    return WebReply("unknown", unexpected=f"the web server answered {verb} with {status}: {body[:150]!r}")
