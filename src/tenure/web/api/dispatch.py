"""Enqueues jobs by name, checked by the code of this process or by what workers have published."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from tenure.client.calls import Call, CallMaker
from tenure.client.named import UnknownJob, call_by_name
from tenure.client.options import CallOptions, Options, call_options
from tenure.client.sending import send_call
from tenure.client.status import JobStatus
from tenure.model.errors import StoreUnavailable
from tenure.model.ids import uuid7_time
from tenure.model.payloads import Json
from tenure.model.states import State
from tenure.store.faults import Refused, StatementTimeout
from tenure.web.api.jobs import shown
from tenure.web.api_routes import ApiCall, Reply, RequestModel
from tenure.web.job_views import JobView
from tenure.web.kind_directory import check_args
from tenure.web.problems import Problem, invalid_value
from tenure.web.security.redaction import refuse_redacted

log = logging.getLogger("tenure")

IDEMPOTENCY_KEY = "idempotency-key"
KEPT_FOR = "24h"
"""How long an Idempotency-Key is reserved for its job."""

LONGEST_IDEMPOTENCY_KEY = 128


class DispatchBody(RequestModel):
    args: dict[str, Any] = Field(default_factory=dict, description="The arguments of the handler, by name.")
    priority: int | str | None = Field(None, description="0 to 100, or critical, high, normal, low, background.")
    delay: float | str | None = Field(None, description='Seconds, or "5m".')
    run_at: AwareDatetime | None = None
    key: str | None = Field(None, description="While a job has this key, no second one is made.")
    key_for: float | str | None = Field(None, description='forever, live, or a duration such as "24h".')
    queue: str | None = None
    capability: str | None = None
    max_attempts: int | None = None
    timeout: float | str | None = Field(None, description='Seconds, or "30s".')
    meta: dict[str, Any] | None = None

    def options(self) -> dict[str, Any]:
        """As given, without `args`."""
        return {name: value for name in self.model_fields_set - {"args"} if (value := getattr(self, name)) is not None}


class Dispatched(TypedDict):
    id: str
    kind: str
    existed: bool
    """An earlier job has the same key; no new job was made."""
    same_input: bool | None
    """False when that one was given other input. None: not reported, because the arguments of this request have values that
    are hidden, and a guess of them would be confirmed."""
    job: JobView | None
    """None if it could not be read: the earlier job has been deleted, or its retention is over. Of a new job without a time,
    `created_at` and `enqueued_at` are by the clock of the web server, and `limit_group` is null: `GET /jobs/{id}` has the stored
    values."""


async def dispatch_job(call: ApiCall, body: DispatchBody) -> Dispatched | Reply:
    """Enqueue a job by the name of its kind: `{"args": {"format": "csv"}}`.

    When this returns, the job survives any crash. 200 instead of 202: a job with the same key exists, and no new one was made.
    The header `Idempotency-Key` makes a repeated request harmless for a day, for jobs without a key of their own. It counts for
    this kind and this token or user. Other arguments with the same key are refused with 422, also if only hidden values differ;
    other options, such as queue, priority or delay, are not compared, and the first job is returned as it is.
    """
    kind = call.path["kind"]
    _check_kind(call, kind)
    refuse_redacted(body.args, "args")
    header = _header_key(call)
    made, options = await _checked(call, kind, body, header)
    if not call.principal.sees(kind=kind, queue=made.fields.queue):
        raise Problem(403, "limited", "this token does not include the queue of this job: give one of its own as `queue`")
    made = made.sent_by(call.principal.name)
    handle = await send_call(call.services.runtime, options, made)
    if header is not None and made.key == header and not handle.same_input:
        raise invalid_value(
            "header.Idempotency-Key", "was used with other arguments: use a new key for each request", "idempotency-key-reused"
        )
    plain = _plain_job(made)
    call.note(subject=str(handle.id), request={"kind": kind, **_without_secrets(call, body, plain)})
    job = await _existing(call, handle.id) if handle.existed else await _written(call, made, plain)
    if job is not None and handle.existed:
        call.note(request={"kind": kind, **_without_secrets(call, body, plain, job)})
    reply: Dispatched = {
        "id": str(handle.id),
        "kind": kind,
        "existed": handle.existed,
        "same_input": None if handle.existed and _has_hidden(call, plain) else handle.same_input,
        "job": None if job is None else shown(call, job),
    }
    location = "../" * (kind.count("/") + 1) + str(handle.id)
    return Reply(reply, 200 if handle.existed else 202, {"Location": location})


async def _checked(call: ApiCall, kind: str, body: DispatchBody, header: str | None) -> tuple[Call[Any], Options]:
    runtime, given = call.services.runtime, body.options()
    options: CallOptions = {**given, "auth": call.principal.auth}  # type: ignore[typeddict-item]
    if kind in runtime.kinds:
        if not given and header is None and call.principal.auth is None:
            return call.services.plain_calls.make(kind, body.args)
        made, checked = call_by_name(runtime, kind, body.args, options)
        if made.key is None and header is not None:
            return call_by_name(runtime, kind, body.args, {**options, "key": header, "key_for": KEPT_FOR})
        return made, checked
    known = await call.services.kinds.published(kind, call.principal)
    if known.kind.makes_key and body.key is None:
        raise _key_needed(kind)
    await check_args(known, body.args, "args")
    if header is not None and body.key is None:
        options = {**options, "key": header, "key_for": KEPT_FOR}
    checked = call_options(kind, "dispatch", **options)
    return CallMaker(UnknownJob.of_published(known.kind), checked).of_input(body.args), checked


def _has_hidden(call: ApiCall, job: JobStatus) -> bool:
    """An input that is the same has the same hidden values, so the stored one need not be read."""
    return bool(call.services.redaction.hide(job.input) != job.input)


def _without_secrets(call: ApiCall, body: DispatchBody, *jobs: JobStatus) -> dict[str, Any]:
    """The options, without a key that is made of a secret of one of these jobs."""
    options = body.options()
    for job in jobs if body.key is not None else ():
        options["key"] = call.services.redaction.secrets_of(job).hide_name(options["key"])
    return options


def _key_needed(kind: str) -> Problem:
    message = (
        f"the code of kind {kind!r} makes an idempotency key, which this process cannot: give `key`, or start the web server "
        "with --app so that it imports the handlers"
    )
    return Problem(422, "key-needed", message, [{"path": "body.key", "message": message}])


async def _existing(call: ApiCall, job_id: UUID) -> JobStatus | None:
    """A key is unique in its kind, over all queues: the job that has it may be in one that the principal may not see."""
    job = await call.services.client.find(job_id)
    if job is not None and not call.principal.sees(kind=job.kind, queue=job.queue):
        raise Problem(409, "key-taken", "a job that this token does not include has this key: use another key, or another token")
    return job


def _check_kind(call: ApiCall, kind: str) -> None:
    if call.principal.kinds is not None and kind not in call.principal.kinds:
        raise Problem(403, "limited", f"this token does not include kind {kind!r}: use another one")


def _header_key(call: ApiCall) -> str | None:
    """The header as a key. It belongs to the token or user: others may choose the same one, also those with the same name."""
    given = call.request.headers.get(IDEMPOTENCY_KEY)
    if given is None:
        return None
    text = given.strip('"')
    if not text or len(text) > LONGEST_IDEMPOTENCY_KEY or not text.isprintable():
        raise invalid_value("header.Idempotency-Key", f"must be 1 to {LONGEST_IDEMPOTENCY_KEY} printable characters: use a UUID")
    owner = hashlib.sha256(call.principal.account.encode()).hexdigest()[:12]
    return f"request:{owner}:{text}"


async def _written(call: ApiCall, made: Call[Any], plain: JobStatus) -> JobStatus | None:
    """PostgreSQL decides when a job with a time is due, and hooks may have changed the call: such jobs are read back. The job is
    accepted, so it is no error if that fails."""
    if made.fields.is_plain and not call.services.runtime.around_enqueue:
        return plain
    try:
        return await call.services.client.find(made.id)
    except (StoreUnavailable, StatementTimeout, Refused) as error:
        log.warning("new job could not be read", extra={"job_id": str(made.id), "error": str(error)})
        return None


def _plain_job(made: Call[Any]) -> JobStatus:
    """As a job without a time was written. Not read back: that would double the cost of a dispatch."""
    fields = made.fields
    return JobStatus(
        id=made.id, kind=fields.kind, queue=fields.queue, state=State.PENDING, priority=fields.priority,
        capability=fields.capability, attempt=0, max_attempts=fields.max_attempts, crashes=0, fence=0, worker_id=None,
        enqueued_at=uuid7_time(made.id), run_at=None, started_at=None, finished_at=None, error=None,
        input=json.loads(made.input), output=None, timeout=fields.timeout, key=made.key, parent_id=None,
        enqueued_by=made.sender.by, auth=_read(made.auth), meta=_read(made.meta), chain_id=made.id,
    )  # fmt: skip


def _read(text: Json | None) -> Any:
    return None if text is None else json.loads(text)
