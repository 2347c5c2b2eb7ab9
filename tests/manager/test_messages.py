"""What supervisor and child send each other arrives as it was sent."""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple, get_args

import pytest

from tenure import Tenure
from tenure.manager import messages
from tenure.manager.messages import (
    AppLoaded,
    AppUnusable,
    AssignWorker,
    ChildClaims,
    ChildHeartbeat,
    ChildRuns,
    LoadApp,
    LoseLease,
    RelayEvent,
    SetPeers,
    Stop,
    StoppedCleanly,
    WorkerFoundCondemned,
)
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.model.claim_counts import ClaimCount
from tenure.model.run_counts import RunCount
from tenure.worker.process.protocol import MessageStream, UnknownMessage, decode, encode

SPEC = ChildSpec(
    app="jobs:app", folder="/srv", flags={"schema": "other"}, queues=["mail"], capabilities=[], without=[], name="mail-1"
)


def hello() -> ChildHello:
    app = Tenure("postgresql://h/x")

    @app.cron(every="1h")
    def work() -> None: ...

    return ChildHello.of(app.kinds, app.settings, SPEC, app.events)


SENT = [
    LoadApp(SPEC),
    AssignWorker("0198f3c2-6f3a-7a55-9f0e-2f6f0c5f2d11", "mail-1"),
    Stop(2.5),
    RelayEvent("LeaderElected", {"duty": "cron", "term": 1}),
    SetPeers(3),
    LoseLease("taken_by_another_worker"),
    AppLoaded(hello()),
    AppUnusable("no module"),
    ChildHeartbeat(1, 20, 45.5, 3),
    ChildRuns([RunCount("default", "work", "completed", 2, 0.25, [0] * 14 + [2, 0])]),
    ChildClaims(ClaimCount(0.5, [0] * 12 + [1], 2)),
    WorkerFoundCondemned(),
    StoppedCleanly(),
]


def test_every_type_is_listed_here():
    assert {type(sent) for sent in SENT} == {*get_args(messages.ToChild), *get_args(messages.ToSupervisor)}


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: type(sent).__name__)
def test_a_message_arrives_as_it_was_sent(sent):
    received = messages.from_message(decode(encode(sent)))
    assert type(received) is type(sent)
    assert received == sent


@pytest.mark.parametrize("message", [{}, {"type": "Unknown"}, {"type": "Stop"}, {"type": "Stop", "grace": 1, "more": 2}])
def test_what_is_not_a_message_is_recognized(message):
    with pytest.raises(UnknownMessage):
        messages.from_message(message)


class Unknown(NamedTuple):
    number: int


async def test_a_stream_ignores_unknown_messages():
    ours, theirs = socket.socketpair()
    stream, other = await MessageStream.over(ours), await MessageStream.over(theirs)
    other.send(Unknown(1))
    other.send(Stop(1.0))
    async with asyncio.timeout(5):
        assert await anext(messages.receive(stream)) == Stop(1.0)
    other.close()
    stream.close()
