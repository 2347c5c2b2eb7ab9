"""Mounted under any path of a host application, without start events, in several event loops and processes."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tenure import Tenure
from tenure.web import create_app
from tests.processes import run_process
from tests.waiting import until
from tests.web.serving import Serving
from tests.web.test_jobs import send


async def mounted(serving: Serving, host, prefix: str):
    server = await serving.serve(host)
    web = await server.client(await serving.token())
    web.base_url = f"{server.url}{prefix}/_api"
    return server, web


async def test_under_a_path_of_fastapi(jobs, serving):
    host = FastAPI()
    web_app = create_app(serving.app)
    host.mount("/internal/tenure", web_app)

    @host.get("/")
    async def home() -> str:
        return "the host's own page"

    server, web = await mounted(serving, host, "/internal/tenure")
    job_id = await send(web)
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    assert (await web.get(f"{answer.request.url}/../{answer.headers['location']}")).status_code == 200
    assert (await web.get("/jobs/nonsense/x")).json()["type"] == "urn:tenure:problem:not-found"
    assert (await web.put("/jobs")).json()["type"] == "urn:tenure:problem:method-not-allowed"
    assert (await web.get(server.url)).json() == "the host's own page"
    live = await server.live(await serving.token(), path="/internal/tenure/_api/live")
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    assert (await live.receive())["job"]["id"] == job_id
    signed_in = await web.post("/session", json={"token": await serving.token()})
    assert "Path=/internal/tenure;" in signed_in.headers["set-cookie"]
    await web_app.close()


async def test_under_a_path_of_starlette_with_its_own_lifespan(jobs, serving):
    web_app = create_app(serving.app)
    _, web = await mounted(serving, Starlette(routes=[Mount("/t", web_app)], lifespan=web_app.lifespan), "/t")
    assert (await web.get("/jobs")).status_code == 200


async def test_behind_a_proxy_that_strips_its_prefix(jobs, serving):
    """As nginx does with `proxy_pass http://127.0.0.1:8080/;`: the app sees its own paths. Its addresses are relative."""
    web = await serving.admin()
    answer = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    assert answer.headers["location"].startswith("../")
    assert "http" not in answer.headers["location"]


async def test_it_starts_with_the_first_request_and_closes_what_it_opened(jobs, serving, sql):
    web_app = create_app(serving.app)
    assert web_app._services == {}
    _, web = await mounted(serving, web_app, "")
    assert (await web.get("/jobs")).status_code == 200
    assert sql(
        "select count(*) > 0 from pg_stat_activity where datname = current_database() and application_name = 'tenure web'"
    ) == [(True,)]
    await web_app.close()
    assert web_app._services == {}
    # A backend ends a moment after its connection was closed.
    await until(
        lambda: sql(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tenure web'"
        ),
        is_=[(0,)],
    )
    assert (await web.get("/jobs")).status_code == 200  # it starts again


def test_each_event_loop_has_its_own_connections(dsn):
    app = Tenure(dsn)
    web_app = create_app(app)

    async def ask() -> int:
        serving = Serving(app)
        _, web = await mounted(serving, web_app, "")
        status = (await web.get("/jobs")).status_code
        await serving.close()
        return status

    assert [asyncio.run(ask()) for _ in range(2)] == [200, 200]
    assert web_app._services == {}


DJANGO = """
import asyncio
import sys

import django
import httpx2
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
django.setup()
urlpatterns = [path("hello/", lambda request: HttpResponse("from django"))]

from django.core.asgi import get_asgi_application

from tenure import Tenure
from tenure.web import create_app

app = Tenure(sys.argv[1])


@app.job
async def greet(name: str) -> str:
    return f"Hello, {name}!"


# the snippet

async def main():
    transport = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as http:
        print((await http.get("/hello/")).text)
        print((await http.get("/jobs/_api/healthz")).json(), (await http.get("/jobs/_api/jobs")).status_code)
        sent = await http.post("/jobs/_api/jobs/greet/dispatch", json={"args": {"name": "Ada"}}, headers={"x-user": "ann"})
        print(sent.status_code, sent.json()["job"]["enqueued_by"], sent.headers["location"] == "../" + sent.json()["id"])
    await app.close()


asyncio.run(main())
"""


def test_in_asgi_of_django_as_the_docs_show(dsn, tmp_path):
    """The very lines of the how-to, in a process of its own: Django is configured once per process."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "web.md").read_text()
    [snippet] = re.findall(r"```\n(web = create_app.*?)```", page, re.DOTALL)
    hook = "from tenure.web import Principal, Scope\n\n\ndef authorize(request):\n    user = request.headers.get('x-user')\n"
    hook += "    return None if user is None else Principal(name=user, scope=Scope.OPERATE)\n\n\n"
    (tmp_path / "asgi.py").write_text(DJANGO.replace("# the snippet", hook + snippet))
    done = run_process([sys.executable, "asgi.py", dsn], cwd=tmp_path, check=True)
    assert done.stdout.splitlines() == ["from django", "{'status': 'ok'} 401", "202 ann True"]
