"""Chromium, driven by node: each act is a line of JSON."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.npm import node, packages
from tests.system_packages import chromium

DRIVER = Path(__file__).parent / "drive.mjs"
PACKAGES = ("playwright-core@1", "axe-core@4")


class Browser:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def __call__(self, act: str, **given: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(json.dumps({"do": act, **given}).encode() + b"\n")
            answer = json.loads(await self._process.stdout.readline())
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
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "node_modules").symlink_to(packages(*PACKAGES) / "node_modules")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    shutil.copy(DRIVER, folder)


@asynccontextmanager
async def open_browser(folder: Path) -> AsyncIterator[Browser]:
    _prepare(folder)
    process = await asyncio.create_subprocess_exec(
        node(), "drive.mjs", chromium(), cwd=folder,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26,
    )  # fmt: skip
    try:
        yield Browser(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(30):
            await process.wait()
