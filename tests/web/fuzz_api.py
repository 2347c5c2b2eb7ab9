"""Schemathesis against a real server: `python -m tests.web.fuzz_api --requests 3000`. Part of `make proof`.

Schemathesis compares every answer with the OpenAPI document. That no answer is a 5xx, and that nothing is answered without a
token, is also checked here, for every request that arrives. Schemathesis has an environment of its own, because it needs many
packages that nothing else uses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2

from tenure import Context, Continue, Tenure, WorkflowContext
from tenure.embedded import EmbeddedServer
from tenure.web import create_token
from tenure.web.route_table import ROUTES
from tenure.web.security import rate_limits
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.web.serving import Serving

PROJECT = Path(__file__).parents[2]
ENVIRONMENT = PROJECT / ".fuzz-venv"
HOOKS = "tests.web.fuzz_hooks"
VERSION = "schemathesis>=4.32,<5"
OPEN = {f"/_api{route.path}" for route in ROUTES if route.scope is None} | {"/static/tenure.js"}
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth"


class Watched:
    """An ASGI app whose answers are counted and checked."""

    def __init__(self, inner: WebApp, token: str) -> None:
        self._inner = inner
        self._token = f"Bearer {token}".encode()
        self.statuses: Counter[int] = Counter()
        self.violations: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def watched(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._judge(scope, message["status"])
            await send(message)

        await self._inner(scope, receive, watched if scope["type"] == "http" else send)

    def _judge(self, scope: Any, status: int) -> None:
        self.statuses[status] += 1
        known = (b"authorization", self._token) in scope["headers"]
        if status >= 500 or (status < 300 and not known and scope["path"] not in OPEN):
            self.violations.append(
                f"{scope['method']} {scope['path']}?{scope['query_string'].decode()} -> {status}, token: {known}"
            )

    @property
    def requests(self) -> int:
        return sum(self.statuses.values())


def shop(dsn: str) -> Tenure:
    app = Tenure(dsn)

    @app.job(queue="exports")
    async def export_users(ctx: Context, format: str, rows: int = 10) -> dict[str, int]:  # noqa: A002 - as in the seed
        ctx.progress(50, "half of it")
        return {format: rows}

    @app.job(max_attempts=1)
    async def burn(why: str) -> None:
        raise ValueError(why)

    @app.job(key="payment_id")
    async def charge(payment_id: str, cents: int = 0) -> int:
        return cents

    @app.job
    async def reserve(item: str) -> Continue[int]:
        return Continue(charge, payment_id=item)

    @app.workflow
    async def order(ctx: WorkflowContext, item: str) -> object:
        await ctx.step("prepare", lambda: {"item": item})
        return await ctx.wait_for_signal("paid")

    return app


CALLS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("export_users", {"format": "csv"}, {}),
    ("export_users", {"format": "csv"}, {"queue": "idle"}),
    ("export_users", {"format": "csv"}, {"delay": 3600}),
    ("burn", {"why": "no fuel"}, {}),
    ("reserve", {"item": "book"}, {}),
    ("order", {"item": "book"}, {}),
)


async def fill(web: httpx2.AsyncClient) -> dict[str, list[str]]:
    """Jobs in many states, chains, workflows, a schedule and a limit. Returns what there is by the name of its path parameter."""
    ids: list[str] = []
    for _ in range(20):
        for kind, args, options in CALLS:
            ids.append((await web.post(f"/jobs/{kind}/dispatch", json={"args": args, **options})).json()["id"])
    await web.post("/schedules", json={"name": "nightly", "kind": "burn", "cron": "0 3 * * *", "input": {"why": "x"}})
    await web.put("/limits/exports", json={"concurrency": 5})
    workers = (await web.get("/workers")).json()["workers"]
    groups = (await web.get("/failures")).json()["groups"]
    return {
        "id": [*ids, *(worker["id"] for worker in workers)],
        "kind": ["export_users", "burn", "charge", "reserve", "order"],
        "queue": ["exports", "idle", "default"],
        "name": ["nightly", "exports"],
        "group": [group["id"] for group in groups],
    }


def schemathesis() -> Path:
    """The command, installed if it is not there yet."""
    command = ENVIRONMENT / "bin" / "st"
    if not command.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([ENVIRONMENT / "bin" / "pip", "install", "--quiet", VERSION], check=True)
    return command


async def attack(url: str, token: str, seed: int, examples: int, known: dict[str, list[str]]) -> tuple[int, str]:
    """Returns its exit code and what it printed."""
    words = [
        schemathesis(), "run", f"{url}/_api/openapi.json", "--header", f"Authorization: Bearer {token}", "--checks", CHECKS,
        "--exclude-path", "/_api/jobs/{id}/events", "--phases", "examples,coverage,fuzzing", "--max-examples", str(examples),
        "--seed", str(seed), "--generation-database", "none", "--suppress-health-check", "all", "--request-timeout", "60",
        "--continue-on-failure", "--warnings", "off", "--no-color", "--output-sanitize", "true",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        more = {"NO_PROXY": "*", "FUZZ_KNOWN": json.dumps(known), "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(PROJECT)}
        process = await asyncio.create_subprocess_exec(
            *map(str, words), cwd=folder, env={**os.environ, **more},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode("utf-8", "replace")


def only_failed_requests(record: logging.LogRecord) -> bool:
    """Jobs of this attack fail by the hundred. Of requests, the route and the error are shown."""
    if record.msg != "web request failed":
        return False
    record.msg = f"{record.msg}: {record.__dict__['route']} {record.__dict__.get('error', '')}"
    return True


async def run(dsn: str, requests: int, examples: int, seed: int) -> int:
    app = shop(dsn)
    await app.migrate()
    logging.getLogger("tenure").addFilter(only_failed_requests)
    rate_limits.FAILURES_PER_MINUTE = 10**9  # wrong tokens are part of the attack; their limit has tests of its own
    token = (await create_token(app, "fuzz", "admin", rate=0)).token
    watched = Watched(WebApp(app, WebOptions()), token)
    serving = Serving(app)
    failed = 0
    try:
        server = await serving.serve(watched)
        web = await server.client(token)
        async with app.running():
            while watched.requests < requests and not failed and not watched.violations:
                failed, printed = await attack(server.url, token, seed, examples, await fill(web))
                print(f"seed {seed}: {watched.requests} requests, {dict(sorted(watched.statuses.items()))}", flush=True)
                seed += 1
                if failed:
                    print(printed)
    finally:
        await serving.close()
        await app.close()
    for violation in watched.violations[:20]:
        print("VIOLATION", violation)
    return 1 if failed or watched.violations else 0


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.web.fuzz_api")
    parser.add_argument("--requests", type=int, default=3000, help="stop after this many (3000)")
    parser.add_argument("--examples", type=int, default=20, help="for each operation in a turn (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first turn (1)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenure-fuzz-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        with EmbeddedServer(Path(name, "server")) as server:
            return asyncio.run(run(server.dsn, given.requests, given.examples, given.seed))


if __name__ == "__main__":
    sys.exit(main())
