"""What a supervisor and its child processes send each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.leader.declaring import Declarations
from tenure.leader.settings import LeaderSettings
from tenure.manager.spec import ChildHello, ChildSpec
from tenure.model.claim_counts import ClaimCount
from tenure.model.run_counts import RunCount
from tenure.worker.process import protocol
from tenure.worker.process.protocol import Message, MessageStream, UnknownMessage

if TYPE_CHECKING:
    from tenure.worker.run.abort import AbortReason

# From the supervisor


class LoadApp(NamedTuple):
    """The first message."""

    spec: ChildSpec


class AssignWorker(NamedTuple):
    """The child is registered and can claim jobs."""

    worker_id: str
    name: str


class Stop(NamedTuple):
    grace: float
    """Seconds for running jobs."""


class RelayEvent(NamedTuple):
    """An event of the supervisor: the child calls the subscribers."""

    name: str
    fields: dict[str, Any]


class SetPeers(NamedTuple):
    peers: int
    """Workers that serve the same queues."""


class LoseLease(NamedTuple):
    reason: AbortReason


# From the child


class AppLoaded(NamedTuple):
    hello: ChildHello


class AppUnusable(NamedTuple):
    reason: str


class ChildHeartbeat(NamedTuple):
    running: int
    """Jobs that run."""
    done: int
    """Runs that have ended."""
    memory_mb: float
    unwritten: int = 0
    """Outcomes that are not written yet."""


class ChildRuns(NamedTuple):
    """The runs that have ended since the last message, if they are counted."""

    counts: Sequence[RunCount]


class ChildClaims(NamedTuple):
    """The claims and lost connections since the last message, if they are counted."""

    claims: ClaimCount


class WorkerFoundCondemned(NamedTuple):
    """A statement of the child found that its worker is condemned: the supervisor renews at once to learn the reason."""


class StoppedCleanly(NamedTuple):
    """The last message. Without it the end of the process is a crash."""


ToChild = LoadApp | AssignWorker | Stop | RelayEvent | SetPeers | LoseLease
ToSupervisor = AppLoaded | AppUnusable | ChildHeartbeat | ChildRuns | ChildClaims | WorkerFoundCondemned | StoppedCleanly

_TYPES: dict[str, Any] = {type_.__name__: type_ for type_ in (*ToChild.__args__, *ToSupervisor.__args__)}


def from_message(message: Message) -> Any:
    """The value that was sent."""
    received = protocol.from_message(message, _TYPES)
    match received:
        case LoadApp(spec=dict(fields)):
            return LoadApp(ChildSpec(**fields))
        case AppLoaded(hello=dict(fields)):
            typed = {"leader": LeaderSettings(**fields["leader"]), "declared": Declarations(**fields["declared"])}
            return AppLoaded(ChildHello(**{**fields, **typed}))
        case ChildRuns(counts):
            return ChildRuns([RunCount(*count) for count in counts])
        case ChildClaims(claims):
            return ChildClaims(ClaimCount(*claims))
        case _:
            return received


async def receive(stream: MessageStream) -> AsyncIterator[Any]:
    """Until the other side is gone. Ignores unknown messages: a handler may have written to the socket."""
    async for message in stream.messages():
        try:
            received = from_message(message)
        except UnknownMessage:
            continue
        yield received
