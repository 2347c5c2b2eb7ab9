"""The tracker in a browser: a page that was written for another tracker (Svelte), and pages with React, Vue and no framework."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, HTMLResponse

from tenure import Context, Fail, Tenure
from tenure.web import create_app, tracker_token
from tests.cli.test_cli import tenure
from tests.npm import PAGES, node, project, run
from tests.system_packages import chromium
from tests.waiting import until
from tests.web.serving import Server, Serving

SOURCES = Path(__file__).parent / "pages"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built with the types of the kinds."""
    folder = project(tmp_path_factory.mktemp("pages") / "project", *PAGES)
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    (folder / "kinds.py").write_text(
        "from tenure import Tenure\napp = Tenure()\n\n@app.job\nasync def export_users(format: str) -> dict[str, int]: ...\n"
    )
    made = tenure("typegen", "--app", "kinds:app", "--output", "jobs.ts", cwd=folder)
    assert made.returncode == 0, made.stderr
    # A page of the same site is known by its address; here the web app is mounted below /tenure.
    with (folder / "jobs.ts").open("a") as file:
        file.write('\nconfigureTenure({ url: "/tenure", dispatch: (globalThis as any).dispatch });\n')
    run([node(), "build.mjs"], folder)
    return folder


class Browser:
    """Chromium, driven by node."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def __call__(self, act: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": act, **given}).encode() + b"\n")
        answer = json.loads(await self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer["value"]

    async def see(self, selector: str, text: str) -> str:
        return await self("wait", selector=selector, text=text)


@pytest.fixture
async def browser(bundles: Path, tmp_path: Path) -> AsyncIterator[Browser]:
    process = await asyncio.create_subprocess_exec(
        node(), "drive.mjs", chromium(), str(tmp_path / "profile"), cwd=bundles,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
    )  # fmt: skip
    yield Browser(process)
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(30):
        await process.wait()


def define_export(app: Tenure, steps: asyncio.Queue[tuple[str, Any]]) -> None:
    @app.job
    async def export_users(ctx: Context, format: str) -> dict[str, int]:  # noqa: A002 - the seed's name
        while True:
            match await steps.get():
                case "progress", (percent, message):
                    ctx.progress(percent, message)
                case "fail", reason:
                    raise Fail(reason)
                case "finish", rows:
                    return {format: rows}


class Shop:
    """The back end of the pages: starts jobs for its users, and hands out a token for each."""

    def __init__(self, app: Tenure, bundles: Path) -> None:
        self.steps: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.app = app
        self.api = FastAPI()
        self.web = create_app(app)
        self.api.mount("/tenure", self.web)

        define_export(app, self.steps)

        @self.api.post("/start/{kind}")
        async def start(kind: str, args: dict[str, Any]) -> dict[str, str]:
            job = await app.enqueue(kind, args)
            return {"id": str(job.id), "token": await tracker_token(app, job.id, cancel=True)}

        @self.api.get("/dispatch.js")
        async def dispatch() -> Response:
            text = (
                "globalThis.dispatch = async (kind, args) => (await fetch(`/start/${kind}`, {method: 'POST', "
                "headers: {'Content-Type': 'application/json'}, body: JSON.stringify(args)})).json();"
            )
            return Response(text, media_type="text/javascript")

        @self.api.get("/dist/{name}")
        async def bundle(name: str) -> FileResponse:
            return FileResponse(bundles / "dist" / name)

        @self.api.get("/favicon.ico")
        async def icon() -> Response:
            return Response(status_code=204)

        @self.api.get("/{name}")
        async def page(name: str) -> HTMLResponse:
            if name == "plain":
                return HTMLResponse((SOURCES / "plain.html").read_text())
            return HTMLResponse(
                f'<!doctype html><body><script src="/dispatch.js"></script><script type="module" src="/dist/{name}.js"></script>'
            )


@pytest.fixture
async def shop(app: Tenure, bundles: Path, serving: Serving) -> AsyncIterator[tuple[Shop, Server]]:
    shop = Shop(app, bundles)
    server = await serving.serve(shop.api)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(shop.web.close)
        await stack.enter_async_context(app.running())
        yield shop, server


@pytest.mark.parametrize("page", ["svelte", "react", "vue", "plain"])
async def test_a_page_shows_progress_the_result_and_the_error(page, browser, shop):
    back_end, server = shop
    await browser("open", url=f"{server.url}/{page}")
    assert "Export complete!" not in await browser("text")
    await browser("click")
    back_end.steps.put_nowait(("progress", (40, "forty of a hundred")))
    await browser.see("span", "forty of a hundred")
    if page == "svelte":
        assert 'style="width: 40%' in await browser("html")
    assert await browser("sockets") == 1
    back_end.steps.put_nowait(("finish", 100))
    await browser.see("p", "Export complete!")
    await until(lambda: closed(browser))  # the job is over
    await browser("click")
    back_end.steps.put_nowait(("fail", "the disk is full"))
    await browser.see("p", "the disk is full")
    await browser("click")
    back_end.steps.put_nowait(("progress", (10, "once more")))
    await browser.see("span", "once more")
    await browser("leave")
    await until(lambda: closed(browser))  # no one looks any more
    back_end.steps.put_nowait(("finish", 1))
    assert await browser("errors") == []


async def closed(browser: Browser) -> bool:
    return await browser("sockets") == 0


async def test_the_page_of_the_seed_follows_a_job_without_websockets(browser, shop):
    back_end, server = shop
    await browser("route", block=True)
    await browser("open", url=f"{server.url}/svelte")
    await browser("click")
    back_end.steps.put_nowait(("progress", (40, "forty of a hundred")))
    await browser.see("span", "forty of a hundred")
    back_end.steps.put_nowait(("finish", 100))
    await browser.see("p", "Export complete!")


async def test_the_page_of_the_seed_survives_a_restart_of_the_server(browser, shop, serving):
    back_end, server = shop
    await browser("open", url=f"{server.url}/svelte")
    await browser("click")
    back_end.steps.put_nowait(("progress", (40, "before the restart")))
    await browser.see("span", "before the restart")
    await server.stop()
    back_end.steps.put_nowait(("progress", (90, "while it was away")))
    again = Server(back_end.api, serving.stack)
    await again.start(port=server.port)
    serving.stack.push_async_callback(again.stop)
    await browser.see("span", "while it was away")
    back_end.steps.put_nowait(("finish", 100))
    await browser.see("p", "Export complete!")


async def test_a_page_of_another_site_needs_to_be_listed(browser, shop, serving, bundles):
    """With a token, across origins: REST, WebSocket and the module itself."""
    back_end, _ = shop
    elsewhere = FastAPI()
    jobs = await serving.serve(allowed_origins=[])
    page = """<!doctype html><link rel="icon" href="data:,"><button>Export</button><p></p><script type="module">
        const loading = import("{url}/static/tenure.js");
        const {{ createTenure }} = await loading.catch(() => document.querySelector("p").append("blocked"));
        const job = createTenure({{ token: "{token}" }}).createJob("export_users");
        job.subscribe((state) => document.querySelector("p").textContent = state?.status ?? "");
        document.querySelector("button").onclick = () => job.start({{ format: "csv" }});
        </script>"""
    token = await serving.token("operate")
    target = {"url": jobs.url}

    @elsewhere.get("/")
    async def show() -> HTMLResponse:
        return HTMLResponse(page.format(token=token, **target))

    site = await serving.serve(elsewhere)
    await browser("open", url=f"{site.url}/")
    await browser.see("p", "blocked")
    target["url"] = (await serving.serve(allowed_origins=[site.url])).url
    await browser("errors")
    await browser("open", url=f"{site.url}/")
    await browser("click")
    await browser.see("p", "running")
    back_end.steps.put_nowait(("finish", 1))
    await browser.see("p", "completed")
    assert await browser("errors") == []
