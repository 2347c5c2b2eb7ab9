"""Every page with real jobs: it shows them, axe finds nothing serious, and nothing scrolls sideways."""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.waiting import until
from tests.web.dashboard.browser import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = {
    "overview": ("h2", "Needs attention"),
    "jobs": ("td", "export_report"),
    "failures": ("button", "KeyError"),
    "queues": ("a.name", "payments"),
    "kinds": ("a.name", "send_receipt"),
    "workers": ("td", "export_report"),
    "leaders": ("span.name", "stager"),
    "workflows": ("td", "waits for the signal approve"),
    "workflows/chains": ("a.name", "reserve_order"),
    "schedules": ("button", "nightly"),
    "dispatch/export_report": ("label", "report"),
    "audit": ("td", "created schedule"),
}
WIDTHS = {1440: "light", 900: "dark", 390: "light", 1441: "dark"}

FINISHED = "svg.chart[aria-label^=Completed]"

SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"


@pytest.fixture
async def busy(shop, serving):
    """Jobs in every state, a schedule, a paused queue, entries in the audit log."""
    await shop.fail()
    running = await shop.export("sales")
    await shop.until_state(running, "running")
    await shop.fulfil()
    await shop.reserve()
    [later] = await shop.start("send_receipt", delay="1h")
    await shop.until_state(later, "scheduled")
    for job_id in await shop.start("send_receipt", 3):
        await shop.until_state(job_id, "completed")
    web = await shop.server.client()
    body = {"name": "nightly", "kind": "send_receipt", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "input": {"order": 1}}
    assert (await web.post("/schedules", json=body)).status_code == 201
    assert (await web.post("/queues/import/pause", json={"reason": "catalogue moves"})).status_code == 200
    return running


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_shows_what_there_is(page, shop, busy, browser):
    selector, text = PAGES[page]
    await browser("open", url=shop.page(page))
    await browser.see(f"#main {selector}", text)
    for width, theme in WIDTHS.items():
        await browser("theme", name=theme)
        await browser("size", width=width, height=900)
        assert await browser("run", script=SIDEWAYS) <= 0, (page, width)
        assert await browser.axe() == [], (page, theme, width)
    await browser.check()


COVERED = """[...document.querySelectorAll("#main td")].filter((cell) => cell.offsetWidth).flatMap((cell) => {
  const { right } = cell.getBoundingClientRect();
  const inside = [...cell.querySelectorAll("a, button, span, div")].filter((one) => !one.parentElement.closest(".cut, .sr"));
  const outside = inside.filter((one) => one.offsetWidth && one.getBoundingClientRect().right > right + 1);
  return outside.map((one) => one.outerHTML.slice(0, 200));
})"""


async def test_no_cell_covers_the_next_one(shop, busy, browser):
    web = await shop.server.client()
    name = "recommendations_of_the_northern_region_low_priority"
    assert (await web.post(f"/queues/{name}/pause", json={"reason": "the provider is down"})).status_code == 200
    await browser("open", url=shop.page("overview"))
    for page in ("overview", "jobs", "failures", "queues", "kinds", "workers", "leaders", "schedules", "audit"):
        selector, text = PAGES[page]
        await browser("size", width=1440, height=900)
        await browser("go", hash=f"#/{page}")
        await browser.see(f"#main[data-page={page}] {selector}", text)
        for width in (1280, 1024, 820, 700, 390):
            await browser("size", width=width, height=900)
            assert await browser("run", script=COVERED) == [], (page, width)
    await browser.check()


async def test_a_job_shows_its_life(shop, busy, browser):
    await browser("open", url=shop.page(f"jobs/{busy}"))
    await browser.see(".callout h2", "Running on")
    await browser.see(".prog-note", "40 of 100 sheets")
    await browser.see(".log", "rows read")
    await browser.see(".tl-row", "Attempt 1")
    assert await browser.axe() == []
    shop.finish("sales")
    await browser.see(".badge", "completed")
    await browser.see(".callout h2", "Completed")
    await browser.see("pre.code", '"sales": 10')
    await browser.check()


async def test_a_failed_job_shows_its_traceback_and_why_it_does_not_run(shop, busy, browser):
    [dead] = (await shop.app.client().list(state="dead_letter", limit=1)).jobs
    await browser("open", url=shop.page(f"jobs/{dead.id}"))
    await browser.see("h2", "Why is it not running?")
    await browser.see(".trace .exc", "KeyError: 'order")
    await browser.see(".trace .own", "in render_invoice")
    for width in WIDTHS:
        await browser("size", width=width, height=900)
        assert await browser("run", script=SIDEWAYS) <= 0
        assert await browser.axe() == []
    await browser.check()


@pytest.mark.parametrize(
    "page",
    [
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
        "dispatch",
        "audit",
    ],
)
async def test_an_empty_database_teaches(page, app, serving, browser):
    server = await serving.serve(open_locally=True)
    await browser("open", url=f"{server.url}/#/{page}")
    await browser.see("#main :is(h2, .empty)")
    assert await browser.axe() == []
    await browser.check()


async def test_a_place_that_does_not_exist(shop, browser):
    await browser("open", url=shop.page("jobs/018f0000-0000-7000-8000-000000000000"))
    await browser.see(".callout h2", "There is no job with this id")
    for place, text in {
        "workflows/": "There is no workflow with this id",
        "workflows/chains/": "There is no chain with this id",
    }.items():
        await browser("go", hash=f"#/{place}018f0000-0000-7000-8000-000000000000")
        await browser.see(".callout h2", text)
    await browser("go", hash="#/nonsense")
    await browser.see("h2", "Needs attention")


async def point_at(browser: Browser, x: int) -> None:
    """Moves the pointer over the chart until its values show: a chart that is drawn again needs a move, as of a hand."""
    moves = cycle((x, x + 1))

    async def tips() -> bool:
        await browser("hover", selector=FINISHED, position={"x": next(moves), "y": 60})
        return any("completed" in text for text in await browser("texts", selector=".tip"))

    await until(tips)


async def test_ranges_and_charts_have_values_on_hover(shop, busy, browser):
    await browser("open", url=shop.page("overview"))
    await browser.button("15 min")
    await browser.see("[aria-pressed=true]", "15 min")
    await point_at(browser, 200)
    await browser("click", selector=".verdict h2")
    await browser("run", script=f"document.querySelector({FINISHED!r}).focus()")
    await browser.press("ArrowLeft")
    await browser.see(".tip", "failed attempts")
    await browser.press("Enter")
    await browser.see("dialog td", "to")
    await browser.press("Escape")
    await browser("run", script="new Promise((done) => setTimeout(done, 3000))")  # it was drawn again meanwhile
    await point_at(browser, 300)
    await browser.check()
