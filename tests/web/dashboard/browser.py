"""Chromium, driven by node: each act is a line of JSON."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.npm import node, packages
from tests.system_packages import chromium

DRIVER = Path(__file__).parent / "drive.mjs"
PACKAGES = ("playwright-core@1", "axe-core@4")


class BrowserProcess:
    """Starts with the first act, and again if it has ended. Many tests share it: a start takes longer than most of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def do(self, act: dict[str, Any]) -> dict[str, Any]:
        """An act that its test has stopped waiting for still ends before the next one begins."""
        with self._turn:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(act).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if not line:
                self._process.wait(30)
                return {"error": f"the browser ended with {self._process.returncode}"}
            return dict(json.loads(line))

    def _start(self) -> subprocess.Popen[bytes]:
        _prepare(self._folder)
        command = [node(), "drive.mjs", chromium()]
        return subprocess.Popen(command, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=30)


class Browser:
    """For one test: its pages share nothing with those of other tests."""

    def __init__(self, process: BrowserProcess) -> None:
        self._process = process

    async def __call__(self, act: str, **given: Any) -> Any:
        answer = await asyncio.to_thread(self._process.do, {"do": act, **given})
        assert "error" not in answer, f"{act} {given}: {answer['error']}\n{answer.get('errors')}"
        return answer["value"]

    async def see(self, selector: str, text: str = "", **given: Any) -> str:
        """Waits until an element of the page has this text."""
        return await self("see", selector=selector, text=text, **given)

    async def gone(self, selector: str, **given: Any) -> None:
        """Waits until no such element is visible."""
        await self("gone", selector=selector, **given)

    async def press(self, *keys: str, **given: Any) -> None:
        await self("press", keys=list(keys), **given)

    async def click(self, selector: str = "", **given: Any) -> None:
        await self("click", selector=selector, **given)

    async def button(self, name: str, **given: Any) -> None:
        await self("click", role="button", name=name, **given)

    async def check(self, **given: Any) -> None:
        """No script of a stranger ran, nothing was refused by the policy, and the page made no error."""
        trouble = await self("trouble", **given)
        assert trouble == {"violations": [], "ran": [], "hostile": None}
        assert [error for error in await self("errors", **given) if "Failed to load resource" not in error] == []

    async def axe(self, **given: Any) -> list[dict[str, Any]]:
        found = await self("axe", **given)
        return [one for one in found if one["impact"] in ("serious", "critical")]


def _prepare(folder: Path) -> None:
    if (folder / DRIVER.name).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "node_modules").symlink_to(packages(*PACKAGES) / "node_modules")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    shutil.copy(DRIVER, folder)


@contextmanager
def browser_process(folder: Path) -> Iterator[BrowserProcess]:
    process = BrowserProcess(folder)
    try:
        yield process
    finally:
        process.close()


@asynccontextmanager
async def pages_in(process: BrowserProcess) -> AsyncIterator[Browser]:
    browser = Browser(process)
    try:
        yield browser
    finally:
        await browser("close_all")


@asynccontextmanager
async def open_browser(folder: Path) -> AsyncIterator[Browser]:
    with browser_process(folder) as process:
        async with pages_in(process) as browser:
            yield browser
