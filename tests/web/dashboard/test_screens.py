"""Pictures of a shop at work. With TENURE_SCREENS=1 those of the documentation are written again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.web.dashboard.scene import scene

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

IMAGES = Path(__file__).parents[3] / "docs" / "images"
WIDTHS = {1440: 900, 900: 900, 390: 844}
PAGES = (
    "overview",
    "jobs",
    "failures",
    "workflows",
    "workflows/chains",
    "queues",
    "kinds",
    "workers",
    "leaders",
    "schedules",
    "dispatch/monthly_report",
    "audit",
)
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
PICTURES = {
    "dashboard-overview": "overview",
    "dashboard-jobs": "jobs",
    "dashboard-failures": "failures?group={group}",
    "dashboard-job": "jobs/{job}",
    "dashboard-workflow": "workflows/{workflow}",
}


async def test_a_shop_at_work(readable_folder, browser):
    async with scene(readable_folder / "scene") as (server, _):
        web = await server.client()
        [group, *_] = sorted((await web.get("/failures")).json()["groups"], key=lambda one: -one["jobs"])
        detail = (await web.get(f"/failures/{group['id']}")).json()
        [workflow, *_] = (await web.get("/workflows", params={"state": "waiting"})).json()["workflows"]
        [chain, *_] = (await web.get("/chains", params={"kind": "pick_items"})).json()["chains"]
        places = {"group": group["id"], "job": detail["newest"][0]["id"], "workflow": workflow["id"]}
        await browser("open", url=f"{server.url}/")
        await browser.see(".vital .v")
        details = (f"jobs/{places['job']}", f"workflows/{workflow['id']}", f"workflows/chains/{chain['id']}")
        for page in (*PAGES, *details):
            await browser("go", hash=f"#/{page}")
            await browser.see("#main :is(td, h2)")
            for width, height in WIDTHS.items():
                await browser("size", width=width, height=height)
                assert await browser("run", script=SIDEWAYS) <= 0, (page, width)
        await browser.check()
        await browser("size", width=1440, height=900)
        folder = IMAGES if os.environ.get("TENURE_SCREENS") else readable_folder
        for name, page in PICTURES.items():
            await browser("go", hash=f"#/{page.format(**places)}")
            await browser.see("#main :is(td, h2)")
            await browser("run", script="new Promise((done) => setTimeout(done, 2500))")
            # The whole overview. In a window of that height, because the navigation is as high as the window.
            height = (
                await browser("run", script="document.scrollingElement.scrollHeight") if name == "dashboard-overview" else 900
            )
            await browser("size", width=1440, height=height)
            await browser("shot", path=str(folder / f"{name}.png"))
            assert (folder / f"{name}.png").stat().st_size > 20_000
