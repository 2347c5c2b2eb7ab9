"""FastAPI and Starlette: lifespan, client, transactions of requests, the mounted web API, errors."""

import asyncio
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import uuid4

import httpx2
import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from starlette.applications import Starlette

from tenure import Client, ConfigError, Job, SchemaMismatch, Tenure
from tenure.integrations.fastapi import add_error_handlers, client_of, in_transaction, lifespan, mount
from tenure.testing import assert_enqueued
from tests.docs.page_runner import as_url


@pytest.fixture
def work(app):
    @app.job
    async def work(n: int) -> int:
        return 2 * n

    return work


def url(dsn: str) -> str:
    return as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1)


def service(app: Tenure, work: Job[Any, Any, Any, Any], **options: Any) -> FastAPI:
    api = FastAPI(lifespan=lifespan(app, **options))
    add_error_handlers(api)
    jobs = Annotated[Client, client_of(app)]

    @api.post("/work/{n}", status_code=202)
    async def start(n: int) -> dict[str, str]:
        return {"id": str((await work.enqueue(n)).id)}

    @api.get("/jobs/{job_id}")
    async def status(job_id: str, client: jobs) -> str:
        return (await client.handle(job_id).status()).state

    return api


def test_the_lifespan_runs_a_worker_and_the_client_finds_its_jobs(app, work):
    with TestClient(service(app, work, worker=True)) as http:
        job_id = http.post("/work/4").json()["id"]
        assert app.client().handle(job_id).result_sync(timeout="20s") == 8
        assert http.get(f"/jobs/{job_id}").json() == "completed"


def test_errors_that_a_request_causes_are_answered(app, work):
    with TestClient(service(app, work)) as http:
        missing = http.get(f"/jobs/{uuid4()}")
        assert (missing.status_code, "detail" in missing.json()) == (404, True)
        assert http.get("/jobs/not-an-id").status_code == 404


def test_an_outage_is_answered_with_503_and_names_no_server(work):
    app = Tenure("postgresql://me:secret@127.0.0.1:1/nowhere", client_timeout_seconds=1)

    @app.job
    async def unreachable(n: int) -> None: ...

    with TestClient(service(app, unreachable, check=False)) as http:
        answer = http.post("/work/1")
    assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (
        503,
        {"detail": "the job queue cannot be reached"},
        "5",
    )


def test_a_database_without_the_schema_stops_the_start(server_dsn, work, app):
    other = Tenure(server_dsn, schema="not_there")
    with pytest.raises(SchemaMismatch), TestClient(FastAPI(lifespan=lifespan(other))):
        pass


def test_a_lifespan_of_ones_own_runs_inside(app):
    seen = []

    @asynccontextmanager
    async def inner(api):
        seen.append("started")
        yield {"answer": 42}
        seen.append("stopped")

    api = Starlette(lifespan=lifespan(app, inner))
    with TestClient(api) as http:
        assert http.app_state["answer"] == 42
    assert seen == ["started", "stopped"]


async def test_the_transaction_of_a_request_is_committed_before_the_answer(app, work, dsn):
    engine = create_async_engine(url(dsn))
    sessions = async_sessionmaker(engine)
    api = FastAPI()

    @api.post("/orders")
    async def create(session: Annotated[AsyncSession, in_transaction(sessions)], fail: bool = False) -> str:
        handle = await work.using(conn=session).enqueue(1)
        if fail:
            raise HTTPException(409)
        return str(handle.id)

    answered = []

    async def note(scope, receive, send):
        async def sending(message):
            if message["type"] == "http.response.start":
                answered.append(len(await asyncio.to_thread(lambda: app.client().list_sync().jobs)))
            await send(message)

        await api(scope, receive, sending)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(note), base_url="http://shop") as http:
        assert (await http.post("/orders", params={"fail": True})).status_code == 409
        assert (await http.post("/orders")).status_code == 200
    assert answered == [0, 1]
    await engine.dispose()


def test_the_transaction_of_a_synchronous_endpoint(app, work, dsn):
    engine = create_engine(url(dsn))
    api = FastAPI()

    @api.post("/orders")
    def create(session: Annotated[Session, in_transaction(sessionmaker(engine))], fail: bool = False) -> None:
        session.execute(text("select 1"))
        work.using(conn=session).enqueue_sync(1)
        if fail:
            raise HTTPException(409)

    with TestClient(api) as http:
        assert http.post("/orders?fail=true").status_code == 409
        assert_enqueued(work, times=0)
        assert http.post("/orders").status_code == 200
        assert_enqueued(work, times=1)
    engine.dispose()


def test_what_gives_no_sessions_is_refused():
    with pytest.raises(ConfigError, match="give a sessionmaker"):
        in_transaction(object())


def test_the_web_api_is_mounted_and_closed_with_the_service(app):
    api = FastAPI(lifespan=lifespan(app))
    mount(api, app, "/queue")
    with TestClient(api) as http:
        assert http.get("/queue/_api/healthz").status_code == 200
        assert http.get("/queue/_api/jobs").status_code == 401
