"""The HTTP API of the shop: `uvicorn shop.api:api`."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from shop import jobs
from shop.db import Order, async_sessions, sync_sessions
from tenure import Client
from tenure.integrations.fastapi import add_error_handlers, client_of, in_transaction, lifespan

api = FastAPI(lifespan=lifespan(jobs.app))
add_error_handlers(api)

Jobs = Annotated[Client, client_of(jobs.app)]


class NewOrder(BaseModel):
    tenant: str
    cents: int
    fail: bool = False


class Accepted(BaseModel):
    order_id: int
    job_id: UUID


@api.post("/orders", status_code=202)
async def create(new: NewOrder, session: Annotated[AsyncSession, in_transaction(async_sessions)]) -> Accepted:
    session.add(order := Order(tenant=new.tenant, cents=new.cents))
    await session.flush()
    handle = await jobs.charge_payment.using(conn=session, meta={"tenant": new.tenant}).enqueue(order.id, new.cents)
    if new.fail:
        raise HTTPException(409, "rolled back, with the job")
    return Accepted(order_id=order.id, job_id=handle.id)


@api.post("/orders-sync", status_code=202)
def create_sync(new: NewOrder, session: Annotated[Session, in_transaction(sync_sessions)]) -> Accepted:
    session.add(order := Order(tenant=new.tenant, cents=new.cents))
    session.flush()
    handle = jobs.charge_payment.using(conn=session).enqueue_sync(order.id, new.cents)
    if new.fail:
        raise HTTPException(409, "rolled back, with the job")
    return Accepted(order_id=order.id, job_id=handle.id)


@api.post("/orders/{order_id}/report", status_code=202)
async def report(order_id: int, pages: int = 5) -> Accepted:
    handle = await jobs.make_report.enqueue(order_id, pages=pages)
    return Accepted(order_id=order_id, job_id=handle.id)


class Csv(BaseModel):
    tenant: str
    text: str
    pause: float = 0.0


@api.post("/imports", status_code=202)
async def imports(body: Csv) -> dict[str, UUID]:
    return {"job_id": (await jobs.import_csv.enqueue(body.tenant, body.text, pause=body.pause)).id}


@api.get("/jobs/{job_id}")
async def status(job_id: str, client: Jobs) -> dict[str, Any]:
    job = await client.handle(job_id).status()
    progress = {"percent": job.progress_percent, "message": job.progress_message}
    return {"state": job.state, "attempt": job.attempt, **progress, "result": job.output, "error": job.error_message}


@api.get("/jobs/{job_id}/events")
async def watch(job_id: str, client: Jobs) -> StreamingResponse:
    updates = client.handle(job_id).watch()
    lines = (f"data: {one.status.state} {one.progress.percent if one.progress else 0:g}\n\n" async for one in updates)
    return StreamingResponse(lines, media_type="text/event-stream")


@api.delete("/jobs/{job_id}")
async def cancel(job_id: str, client: Jobs) -> dict[str, bool]:
    return {"canceled": await client.handle(job_id).cancel("by the user", by="api")}
