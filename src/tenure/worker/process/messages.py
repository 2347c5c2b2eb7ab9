"""What a worker and the process of a handler send each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure.model.claimed_job import ClaimedJob
from tenure.store.target import DatabaseTarget
from tenure.worker.process import protocol
from tenure.worker.process.protocol import Message

# From the worker


class Hello(NamedTuple):
    database: DatabaseTarget
    path: list[str]
    """The worker's `sys.path`."""
    home: str | None
    """The module of the app: imported first."""
    django: bool


class RunJob(NamedTuple):
    job: ClaimedJob
    claim_id: str
    worker_id: str
    module: str
    """Where the handler is defined."""
    main: str | None
    """The file to run if that is `__main__`."""


class CallFunction(NamedTuple):
    """A function for a step of a workflow. It knows nothing of the job."""

    module: str
    """Where it is defined."""
    main: str | None
    """The file to run if that is `__main__`."""
    name: str
    """Its qualified name there."""
    arguments: str
    """Pickled, in base 64."""


class Abort(NamedTuple):
    reason: str


class Flushed(NamedTuple):
    """All that the process has reported is written."""


# From the process


class TakenUp(NamedTuple):
    """It has received the job. If it dies from now on, that is the job's crash."""


class HandlerCalled(NamedTuple):
    """The modules of the handler are imported. Its time limit counts from now on."""


class SendProgress(NamedTuple):
    percent: float
    message: str | None


class Heartbeat(NamedTuple):
    pass


class SendLogLine(NamedTuple):
    level: str
    message: str
    fields: dict[str, Any]


class Flush(NamedTuple):
    """Asks for `Flushed`."""


class SettledItself(NamedTuple):
    """The handler's own transaction has settled the job."""

    settlement: dict[str, Any]
    watched: bool
    owes_output: bool


class InDoubt(NamedTuple):
    """The COMMIT of the handler's own transaction was not answered."""

    settlement: dict[str, Any]


class Returned(NamedTuple):
    output: str


class FunctionReturned(NamedTuple):
    result: str
    """Pickled, in base 64."""


class Decided(NamedTuple):
    """The handler returned or raised an outcome."""

    name: str
    value: Any
    raised: bool


class StoppedByAbort(NamedTuple):
    reason: str


class Raised(NamedTuple):
    text: str
    worth_another_attempt: bool
    exception: dict[str, Any]


ToProcess = Hello | RunJob | CallFunction | Abort | Flushed
Reported = HandlerCalled | SendProgress | Heartbeat | SendLogLine | Flush | SettledItself | InDoubt
Answer = Returned | FunctionReturned | Decided | StoppedByAbort | Raised
ToWorker = TakenUp | Reported | Answer

_TYPES: dict[str, Any] = {type_.__name__: type_ for type_ in (*ToProcess.__args__, *ToWorker.__args__)}


def from_message(message: Message) -> Any:
    """The value that was sent."""
    received = protocol.from_message(message, _TYPES)
    match received:
        case Hello(database=dict(fields)):
            return received._replace(database=DatabaseTarget(**fields))
        case RunJob():
            return received._replace(job=ClaimedJob._make(received.job))
        case _:
            return received
