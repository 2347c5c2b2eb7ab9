"""Commands in this process, on one emptied database. `started.py` runs them in a separate process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from tenure import Tenure
from tenure.cli.main import cli
from tests.planted_secrets import assert_no_secret
from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, shared_database, shared_dsn

__all__ = ["bare_dsn", "database", "dsn", "fresh_dsn", "shared_database", "shared_dsn"]

FOREIGN = ("TENURE_", "PG", "DATABASE_URL", "COLUMNS", "FORCE_COLOR", "NO_COLOR")

SHOP = """
from dataclasses import dataclass
from tenure import Cancel, Context, Tenure

app = Tenure()
print("output of a module goes to stderr")

@dataclass
class Parcel:
    to: str
    grams: int = 100

@app.job(queue="mail")
async def send_welcome(ctx: Context, user_id: int, template: str = "welcome") -> str:
    ctx.progress(50, "half of it")
    return f"{template} sent to user {user_id}"

@app.job(max_attempts=1)
async def burn(why: str) -> None:
    raise ValueError(why)

@app.job
async def drop(reason: str = "not needed") -> None:
    raise Cancel(reason)

@app.job
async def ship(parcel: Parcel) -> dict[str, int]:
    return {parcel.to: parcel.grams}
"""


class CommandLine:
    """Runs commands as a person types them."""

    def __init__(self, dsn: str) -> None:
        clean = {name: None for name in os.environ if name.startswith(FOREIGN)}
        self.env: dict[str, str | None] = {**clean, "TENURE_DSN": dsn}

    def __call__(self, *words: object, typed: str | None = None, **env: str | None) -> Result:
        answer = CliRunner().invoke(cli, [str(word) for word in words], input=typed, env={**self.env, **env}, prog_name="tenure")
        assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exc_info
        assert_no_secret(answer.output)
        return answer

    def json(self, *words: object, **more: Any) -> Any:
        """The document that a successful command prints with --json."""
        answer = self(*words, "--json", **more)
        assert answer.exit_code == 0, answer.output
        return json.loads(answer.stdout)


@pytest.fixture
def line(dsn: str) -> CommandLine:
    return CommandLine(dsn)


@pytest.fixture
def sql(database) -> Callable[..., list[tuple[Any, ...]]]:
    return database.sql


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An app in its own module in the current directory: `module:app`."""
    name = f"shop_{uuid4().hex[:8]}"
    (tmp_path / f"{name}.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield f"{name}:app"
    sys.modules.pop(name, None)


@pytest.fixture
def enqueue_job(app: Tenure) -> Iterator[Callable[..., str]]:
    """Enqueues a job that no worker runs, and returns its id."""

    @app.job
    async def work(n: int = 0) -> int:
        return n

    yield lambda n=0, **options: str(work.using(**options).enqueue_sync(n).id)
    app._portal.close()
