"""Schemathesis against a real server: `python -m tests.web.fuzz_api --requests 3000`. Part of `make proof`.

Schemathesis compares every answer with the OpenAPI document. That no answer is a 5xx, and that nothing is answered without a
token, is also checked here, for every request that arrives. Half of them go to a server without the handlers, which knows kinds
only from what workers have published. Schemathesis has an environment of its own, because it needs many packages that nothing
else uses.
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
STREAM = "/_api/jobs/{id}/events"
"""Not attacked: the answer for a live job ends with the job, and Schemathesis reads every answer to its end. Its tests are in
`test_live.py`."""
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


SCHEDULE = {"name": "nightly", "kind": "burn", "cron": "0 3 * * *", "input": {"why": "x"}}
LIMITS = ("kind:export_users", "queue:exports")


async def fill(web: httpx2.AsyncClient) -> dict[str, list[str]]:
    """Jobs in many states, chains, workflows, a schedule and limits. Returns what there is by the name of its path parameter."""
    ids: list[str] = []
    for _ in range(20):
        for kind, args, options in CALLS:
            sent = await ask(web, "POST", f"/jobs/{kind}/dispatch", 202, json={"args": args, **options})
            ids.append(sent["id"])
    await ask(web, "POST", "/schedules", 201, 409, json=SCHEDULE)  # 409: it is still there from the turn before
    for limit in LIMITS:
        await ask(web, "PUT", f"/limits/{limit}", 200, json={"concurrency": 5, "rate": None, "fair_by": None})
    workers = (await ask(web, "GET", "/workers", 200))["workers"]
    groups = (await ask(web, "GET", "/failures", 200))["groups"]
    return {
        "id": [*ids, *(worker["id"] for worker in workers)],
        "kind": ["export_users", "burn", "charge", "reserve", "order"],
        "queue": ["exports", "idle", "default"],
        "name": [SCHEDULE["name"], *LIMITS],
        "group": [group["id"] for group in groups],
    }


async def ask(web: httpx2.AsyncClient, method: str, path: str, *expected: int, **options: Any) -> dict[str, Any]:
    """The answer, which must have one of the expected statuses: without what it makes, less would be attacked."""
    answer = await web.request(method, path, **options)
    if answer.status_code not in expected:
        raise SystemExit(f"{method} {path} answered {answer.status_code}, not {expected}: {answer.text}")
    found: dict[str, Any] = answer.json()
    return found


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
        "--exclude-path", STREAM, "--phases", "examples,coverage,fuzzing", "--max-examples", str(examples),
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
    without_code = Tenure(dsn)
    targets = {
        "with the handlers": Watched(WebApp(app, WebOptions()), token),
        "without them": Watched(WebApp(without_code, WebOptions()), token),
    }
    serving = Serving(app)
    try:
        async with app.running():
            failed = await take_turns(serving, targets, token, requests=requests, examples=examples, seed=seed)
    finally:
        await serving.close()
        await without_code.close()
        await app.close()
    violations = [violation for watched in targets.values() for violation in watched.violations]
    for violation in violations[:20]:
        print("VIOLATION", violation)
    return 1 if failed or violations else 0


async def take_turns(
    serving: Serving, targets: dict[str, Watched], token: str, *, requests: int, examples: int, seed: int
) -> bool:
    """Attacks each target until it has had its share of the requests. Returns whether Schemathesis has found something."""
    servers = {name: await serving.serve(watched) for name, watched in targets.items()}
    while wanting := [name for name, watched in targets.items() if watched.requests * len(targets) < requests]:
        for name in wanting:
            watched, server = targets[name], servers[name]
            known = await fill(await server.client(token))
            failed, printed = await attack(server.url, token, seed, examples, known)
            print(f"seed {seed}, {name}: {watched.requests} requests, {dict(sorted(watched.statuses.items()))}", flush=True)
            seed += 1
            if failed:
                print(printed)
            if failed or watched.violations:
                return failed != 0
    return False


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.web.fuzz_api")
    parser.add_argument("--requests", type=int, default=3000, help="stop after this many (3000)")
    parser.add_argument("--examples", type=int, default=10, help="for each operation in a turn (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the first turn (1)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenure-fuzz-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        with EmbeddedServer(Path(name, "server")) as server:
            return asyncio.run(run(server.dsn, given.requests, given.examples, given.seed))


if __name__ == "__main__":
    sys.exit(main())
