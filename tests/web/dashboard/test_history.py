"""Charts of the past: they show what the leader has recorded, also from before the page was opened."""

from __future__ import annotations

import json

import pytest

from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORDS = "[...document.querySelectorAll('#main svg.chart text')].map((one) => one.textContent)"
DRAWN = "(document.querySelector('#main svg.chart[aria-label^=\"{label}\"] path.lineseg')?.getAttribute('d') ?? '').length"
BUSY = """[...document.querySelectorAll('.vital')].find((one) => one.innerText.startsWith('Slots busy'))
  .querySelector('.spark path:last-child').getAttribute('d').split('L').length"""


@pytest.fixture
def recorded(sql):
    """Forty minutes of two versions, and jobs that wait in two queues."""
    for age in range(1, 41):
        versions = ["1.0"] if age > 20 else ["1.0", "2.0"]
        queues = [{"name": "mail", "pending": age, "oldest": 10 * age}, {"name": "stock", "pending": 2, "oldest": 3}]
        sql(
            "insert into tenure.fleet_minutes values (date_trunc('minute', now()) - make_interval(mins => %s), 3, 30, 7, %s, %s,"
            " 120, %s, %s) on conflict do nothing",
            *(age, age + 2, 10 * age, json.dumps(versions), json.dumps(queues)),
        )


async def test_a_deploy_is_marked_and_the_first_known_version_is_not(recorded, shop, browser):
    await browser("open", url=shop.page("overview"))

    async def marks():
        return [text for text in await browser("run", script=WORDS) if text.startswith("deploy")]

    await until(marks, is_=["deploy 2.0"])
    assert await browser("run", script=BUSY) > 20
    await browser.check()


async def test_workers_and_queues_have_a_past(recorded, shop, browser):
    await browser("open", url=shop.page("workers"))
    await browser.see(".legend", "workers")
    for label in ("Busy slots", "Memory of the largest process"):
        assert await browser("run", script=DRAWN.format(label=label)) > 100, label
    await browser("go", hash="#/queues")
    for title in ("Oldest pending", "Pending"):
        await browser.see(f"section[aria-label='{title}'] .legend", "mail")
        await browser.see(f"section[aria-label='{title}'] .legend", "stock")
        assert await browser("run", script=DRAWN.format(label=f"{title} by queue")) > 100, title
    await browser.check()


async def test_the_version_of_the_app_is_shown_for_each_worker(app, shop, browser, sql):
    sql("update tenure.workers set app_version = 'v12-3fa9c1'")
    await browser("open", url=shop.page("workers?by=version"))
    await browser.see("tr.group", "v12-3fa9c1")
    await browser.see("header .sub", "1 version")
    await browser.check()
