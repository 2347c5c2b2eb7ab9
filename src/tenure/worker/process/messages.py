"""What a worker and the process of a handler send each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure.model.claimed_job import ClaimedJob
from tenure.worker.process.protocol import Message

# From the worker


class Hello(NamedTuple):
    database: dict[str, Any]
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


class Abort(NamedTuple):
    reason: str


class Flushed(NamedTuple):
    """All that the process has reported is written."""


# From the process


class TakenUp(NamedTuple):
    """It has received the job. If it dies from now on, that is the job's crash."""


class Progress(NamedTuple):
    percent: float
    message: str | None


class Heartbeat(NamedTuple):
    pass


class LogLine(NamedTuple):
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


ToProcess = Hello | RunJob | Abort | Flushed
ToWorker = (
    TakenUp | Progress | Heartbeat | LogLine | Flush | SettledItself | InDoubt | Returned | Decided | StoppedByAbort | Raised
)

_TYPES: dict[str, Any] = {type_.__name__: type_ for type_ in (*ToProcess.__args__, *ToWorker.__args__)}


class UnknownMessage(Exception):  # noqa: N818 - reads as the fact it states
    """Not one of the messages above: the handler may have written to the connection."""


def to_message(sent: ToProcess | ToWorker) -> Message:
    return {"type": type(sent).__name__, **sent._asdict()}


def from_message(message: Message) -> Any:
    """The value that `to_message()` was given."""
    try:
        fields = dict(message)
        received = _TYPES[fields.pop("type")](**fields)
    except (KeyError, TypeError, ValueError):
        # Its values may be the job's data, and this text is logged.
        names = ", ".join(map(str, message)) if isinstance(message, dict) else ""
        raise UnknownMessage(f"it sent a message that is not understood: {names or 'nothing'}") from None
    return received._replace(job=ClaimedJob._make(received.job)) if isinstance(received, RunJob) else received
