"""The changes of one job as Server-Sent Events, for clients without WebSockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from tenure.model.errors import StoreUnavailable
from tenure.web.api.jobs import find_unredacted, visible
from tenure.web.api_routes import ApiCall, Reply
from tenure.web.job_views import OVER
from tenure.web.live.followed import FollowedJob, check_version
from tenure.web.live.topics import LiveTopic, Subject
from tenure.web.security.authentication import RECHECK

KEEP_ALIVE = 15.0
"""Seconds after which a comment is sent, so that proxies keep the connection and a closed one is noticed."""


async def stream_events(call: ApiCall) -> str | Reply:
    """Follow a job as Server-Sent Events: first its current state, then each change, until it is over.

    Each event has the version of the job as its id. With `Last-Event-ID`, a version that was seen is not sent again, and 204 is
    answered if the job is over and nothing has changed since: `EventSource` then stops.
    """
    job = await visible(call)
    seen = call.request.headers.get("last-event-id")
    check_version(seen, "header.Last-Event-ID")
    if job.state in OVER and seen is not None:
        followed = FollowedJob(LiveTopic(Subject.JOB, str(job.id)))
        for found in await find_unredacted(call, [job.id], None):  # read as for live connections, without large inputs
            followed.update(call.services.redaction.job(found.job))
        if followed.digest == seen:
            return Reply(None, 204)
    call.services.live.check_room(call.principal)
    headers = {"X-Accel-Buffering": "no"}
    # The answer to HEAD has no body, and the next request on its connection waits until it has ended.
    events = _no_events() if call.request.method == "HEAD" else _events(call, str(job.id), seen)
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")  # type: ignore[return-value]


async def _no_events() -> AsyncIterator[bytes]:
    return
    yield b""  # makes it an iterator


async def _events(call: ApiCall, job_id: str, seen: str | None) -> AsyncIterator[bytes]:
    hub, authenticator = call.services.live, call.services.authenticator
    with hub.viewing(call.principal) as viewer:
        hub.subscribe(viewer, LiveTopic(Subject.JOB, job_id), seen)
        loop = asyncio.get_running_loop()
        checked = loop.time()
        yield b"retry: 1000\n\n"
        while True:
            text: str | None = None
            try:
                async with asyncio.timeout(min(KEEP_ALIVE, checked + RECHECK - loop.time())):
                    text = await viewer.outbox.take()
                if text is None:
                    return
            except TimeoutError:
                yield b": still here\n\n"
            if loop.time() - checked >= RECHECK:
                checked = loop.time()
                try:
                    if not await authenticator.still_valid(call.request, call.principal, None):
                        return
                except StoreUnavailable:
                    return  # the client connects again, and then learns why it does not work
            if text is not None:
                message = json.loads(text)
                yield _event(message["type"], text, message.get("version"))
                if message["type"] == "gone" or message["job"]["over"]:
                    return


def _event(name: str, text: str, version: str | None) -> bytes:
    identity = f"id: {version}\n" if version else ""
    return f"{identity}event: {name}\ndata: {text}\n\n".encode()
