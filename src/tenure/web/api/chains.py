"""Chains: jobs of which each was created by the one before it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from tenure.client.cancel_delete import cleaned
from tenure.client.filters import to_id
from tenure.flow import completing
from tenure.flow.access import access
from tenure.flow.chain_status import Chain, ChainSummary
from tenure.model.errors import JobNotFound
from tenure.model.states import State
from tenure.store import live
from tenure.store.jobs import JobRow
from tenure.web.api_routes import ApiCall, RequestModel
from tenure.web.flow_views import ChainView, chain_view
from tenure.web.kind_directory import check_output
from tenure.web.problems import invalid_value
from tenure.web.security.redaction import refuse_redacted


class ChainsQuery(RequestModel):
    state: list[State] | None = Field(None, description="Of the chain, i.e. of its last link: one or several states.")
    kind: str | None = Field(None, description="Of the first link, as is `queue`.")
    queue: str | None = None
    limit: int = Field(50, ge=1, le=200)
    after: str | None = Field(None, description="The `next` of the previous page.")


class CompleteBody(RequestModel):
    output: Any = Field(None, description="The output of the chain.")


class DeleteQuery(RequestModel):
    cascade: bool = Field(False, description="Also delete chains that wait for this one.")


class ChainRow(TypedDict):
    """A chain in a list."""

    id: str
    kind: str
    """Of its first link."""
    state: str
    """Of its last link. If you may not see that one, the row shows the first link only."""
    links: int
    last_kind: str
    last_id: str
    enqueued_at: str
    finished_at: str | None


class ChainList(TypedDict):
    chains: list[ChainRow]
    next: str | None
    """Pass it as `after` for the next page. A short or even empty page can have a next one."""


class Completed(TypedDict):
    id: str
    link: str
    """The job that was live."""


class ChainDeleted(TypedDict):
    id: str
    deleted: int
    """How many chains."""


async def list_chains(call: ApiCall, query: ChainsQuery) -> ChainList:
    """List chains, newest first. Every job that was not created by another link starts one."""
    call.principal.require_filter(kind=query.kind, queue=query.queue)
    limited, wanted = call.principal.limited, query.state
    page = await call.services.chains.list(
        limit=query.limit, after=_cursor(query.after), kind=query.kind, queue=query.queue, state=None if limited else wanted
    )
    rows = [_row(one) for one in page.chains]
    if limited:
        rows = [row for row in await _visible_rows(call, rows) if wanted is None or row["state"] in wanted]
    return {"chains": rows, "next": page.next}


async def _visible_rows(call: ApiCall, rows: list[ChainRow]) -> list[ChainRow]:
    """A chain whose last link the principal may not see is shown as its first link, also to the filter by state."""
    ids = {UUID(row[name]) for row in rows for name in ("id", "last_id")}
    found = {str(one.job.id): one.job for one in await call.services.read(live.find_shown(list(ids), 0))} if ids else {}

    def sees(job_id: str) -> bool:
        return job_id in found and call.principal.sees(kind=found[job_id].kind, queue=found[job_id].queue)

    return [row if sees(row["last_id"]) else _first_link(row, found[row["id"]]) for row in rows if sees(row["id"])]


def _first_link(row: ChainRow, first: JobRow) -> ChainRow:
    finished_at = None if first.finished_at is None else first.finished_at.isoformat()
    return {
        **row,
        "state": first.state,
        "links": 1,
        "last_kind": first.kind,
        "last_id": str(first.id),
        "finished_at": finished_at,
    }


async def get_chain(call: ApiCall) -> ChainView:
    """Show a chain with its links, by its id or that of any of its jobs."""
    return chain_view(await _visible(call), call.principal, call.services.redaction)


async def complete_chain(call: ApiCall, body: CompleteBody) -> Completed:
    """Complete a chain without a worker: its live link ends with this output. A running handler is aborted."""
    chain, runtime = await _visible(call), call.services.runtime

    async def check(link: JobRow) -> None:
        """The chain may have got another link since it was read."""
        if not call.principal.sees(kind=link.kind, queue=link.queue):
            raise JobNotFound(to_id(call.path["id"]))
        known = None if link.kind in runtime.kinds else await call.services.kinds.find(link.kind)
        if known is not None:
            await check_output(known, body.output)

    refuse_redacted(body.output, "output")
    connections = await access(runtime, None)
    by = cleaned(call.principal.name)
    link = await completing.complete(connections, runtime.kinds, chain.id, body.output, by=by, events=runtime.events, check=check)
    call.note(before={"state": chain.state}, after={"link": str(link)})
    return {"id": str(chain.id), "link": str(link)}


async def delete_chain(call: ApiCall, query: DeleteQuery) -> ChainDeleted:
    """Delete a chain with all its links. A running handler is aborted."""
    chain = await call.services.chains.get(call.path["id"])
    deleted = await call.services.chains.delete(chain.id, cascade=query.cascade)
    call.services.stats.forget_failures()
    call.note(before={"state": chain.state, "kind": chain.kind, "links": len(chain.links)}, after={"deleted": deleted})
    return {"id": str(chain.id), "deleted": deleted}


async def _visible(call: ApiCall) -> Chain:
    """The chain in the path. One without a link that the principal may see does not exist for them."""
    chain = await call.services.chains.get(call.path["id"])
    if not any(call.principal.sees(kind=link.job.kind, queue=link.job.queue) for link in chain.links):
        raise JobNotFound(to_id(call.path["id"]))
    return chain


def _row(one: ChainSummary) -> ChainRow:
    return {
        "id": str(one.id),
        "kind": one.kind,
        "state": one.state.value,
        "links": one.links,
        "last_kind": one.last_kind,
        "last_id": str(one.last_id),
        "enqueued_at": one.enqueued_at.isoformat(),
        "finished_at": None if one.finished_at is None else one.finished_at.isoformat(),
    }


def _cursor(after: str | None) -> str | None:
    try:
        return None if after is None else str(UUID(after))
    except ValueError:
        raise invalid_value("query.after", "is not a cursor: give the `next` of a page, or leave it out") from None
