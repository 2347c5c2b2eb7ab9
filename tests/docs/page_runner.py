"""A page as its reader follows it: files written as they come, a worker beside them, programs run one after another."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.docs.pages import ROOT, Block, blocks_of
from tests.processes import WorkerProcess, run_process, worker_process

PATIENCE = 60  # seconds for a program
APP = re.compile(r"--app (\S+)")
MANAGE = "python manage.py "


class PageRunner:
    def __init__(self, page: str, folder: Path, dsn: str) -> None:
        self._page = page
        self._folder = folder
        self._dsn = as_url(dsn)
        self._worker: WorkerProcess | None = None
        self._running = ExitStack()
        self._said = ""
        """By the workers that have been replaced."""
        self._app = next(iter(APP.findall("\n".join(b.text for b in blocks_of(page, "sh")))), "jobs:app")
        self._manages = any(line.startswith(MANAGE) for block in blocks_of(page, "sh") for line in block.lines)
        self._env = {
            "TENURE_DSN": self._dsn,
            "DJANGO_SETTINGS_MODULE": "shop.settings" if self._manages else "shop_settings",
            **dict(exported(page)),
        }

    @contextmanager
    def following(self) -> Iterator[None]:
        """Every block in its turn; then the worker goes on for as long as you look. What a program prints must be what the
        page says it does."""
        shutil.copy(ROOT / "tests" / "docs" / "shop_settings.py", self._folder)
        if self._manages:
            shutil.copytree(ROOT / "tests" / "docs" / "django_project", self._folder, dirs_exist_ok=True)
        blocks = [block for block in blocks_of(self._page) if block.language != "sh" or self._manages]
        with self._running:
            for block, after in zip(blocks, [*blocks[1:], None], strict=True):
                match block.language:
                    case "toml":
                        (self._folder / "tenure.toml").write_text(block.text)
                    case "sql":
                        with psycopg.connect(self._dsn, autocommit=True) as connection:
                            connection.execute(block.text.encode())
                    case "sh":
                        self._manage(block)
                    case "python" if "/" in block.file:  # part of a package: imported by the others
                        self._write(block)
                    case "python":
                        self._write(block)
                        printed = self._run(block.file)
                        shown = after.text if after is not None and after.language == "text" else ""
                        assert fits(printed, shown), f"{self._page}, {block.file} printed\n{printed}\nand not\n{shown}"
            for block in blocks_of(self._page, "json"):
                assert any(fits_json(line, json.loads(block.text)) for line in self._log()), f"no log line matches {block.text}"
            yield

    def _write(self, block: Block) -> None:
        file = self._folder / block.file
        with file.open("a" if block.continues else "w") as out:
            out.write("\n\n" + block.text if block.continues else block.text)
        if "/" in block.file:
            return
        if self._app.startswith("tenure."):
            self._restart_worker(unless_running=True)
        elif f"{file.stem}:app" == self._app:
            self._restart_worker()

    def _restart_worker(self, *, unless_running: bool = False) -> None:
        """As `tenure dev` does when the code changes."""
        if self._worker is not None and unless_running:
            return
        if self._worker is not None:
            self._worker.terminate()
            self._worker.wait(PATIENCE)
            self._said += self._worker.said
        self._worker = self._running.enter_context(worker_process(self._folder, self._dsn, app=self._app, env=self._env))

    def _manage(self, block: Block) -> None:
        """The commands of Django's that end by themselves."""
        for line in block.lines:
            if line.startswith(MANAGE) and " worker" not in line:
                self._run(*line.removeprefix("python ").split())

    def _run(self, name: str, *arguments: str) -> str:
        env = {**os.environ, **self._env, "TENURE_TEST_DSN": self._dsn}
        is_test = name.startswith("test_")
        command = [sys.executable, "-m", "pytest", "-q", name] if is_test else [sys.executable, "-W", "error", name, *arguments]
        ran = run_process(command, cwd=self._folder, env=env, timeout=PATIENCE)
        said = self._worker.said if self._worker else "there is none"
        assert ran.returncode == 0, f"{self._page}, {name}:\n{ran.stdout if is_test else ran.stderr}\nthe worker says:\n{said}"
        return "" if is_test else ran.stdout

    def _log(self) -> Iterator[dict[str, object]]:
        for line in (self._said + (self._worker.said if self._worker else "")).splitlines():
            with suppress(ValueError):
                yield json.loads(line)


def exported(page: str) -> Iterator[tuple[str, str]]:
    """The variables that a page asks its reader to set, except for the database."""
    for block in blocks_of(page, "sh"):
        for name, value in re.findall(r"^export (TENURE_\w+)=(\S+)$", block.text, re.MULTILINE):
            if name != "TENURE_DSN":
                yield name, value


def fits(printed: str, shown: str) -> bool:
    """`...` matches any text; on a line of its own, any lines."""
    return re.fullmatch("".join(map(_pattern, shown.splitlines(keepends=True))), printed) is not None


def _pattern(line: str) -> str:
    return r"(?:.*\n)*" if line == "...\n" else ".*".join(map(re.escape, line.split("...")))


def fits_json(line: dict[str, object], shown: dict[str, object]) -> bool:
    return line.keys() == shown.keys() and all(value in ("...", line[name]) for name, value in shown.items())


def as_url(dsn: str) -> str:
    """The form that every driver reads."""
    given = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    user, password, name = (quote(given.pop(part, ""), safe="") for part in ("user", "password", "dbname"))
    account = f"{user}:{password}@" if password else f"{user}@"
    return f"postgresql://{account}/{name}?{urlencode(given)}"
