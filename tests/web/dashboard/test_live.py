"""Live updates: they arrive, pause really pauses, the server may go away, and two people may act on one job."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.waiting import until
from tests.web.serving import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_rows_change_and_new_jobs_arrive(shop, browser):
    job_id = await shop.export()
    await browser("open", url=shop.page("jobs?kind=export_report"))
    await browser.see("tr progress")
    await shop.export("stock")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=2)
    shop.finish("sales")
    await browser.see(f"tr[data-id='{job_id}']", "completed")
    await browser.check()


async def test_new_jobs_wait_while_someone_works_with_the_list(shop, browser):
    await shop.start("send_receipt", 3)
    await browser("open", url=shop.page("jobs?kind=send_receipt"))
    await until(lambda: browser("count", selector="tr[data-row]"), is_=3)
    await browser.click("tr[data-row] input")
    await shop.start("send_receipt", 2)
    await browser.see(".newer", "2 newer jobs")
    assert await browser("count", selector="tr[data-row]") == 3
    await browser.click(".newer")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=5)


async def test_a_job_that_no_longer_matches_stays_and_says_so(shop, browser):
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    await browser("open", url=shop.page("jobs?state=running"))
    await browser.click("tr[data-row] input")
    shop.finish()
    await browser.see(f"tr[data-id='{job_id}']", "left this list")


async def test_pause_really_pauses(shop, browser):
    await shop.export()
    await browser("open", url=shop.page("overview"))
    await browser.see(".vital", "Slots busy")
    await browser.press("p")
    await browser.see(".live", "Paused at")
    await browser("sent")
    before = await browser("run", script="document.querySelector('#main').innerText")
    shop.finish()
    for job_id in await shop.start("send_receipt", 5):
        await shop.until_state(job_id, "completed")
    for _ in range(3):  # the tick of the page's clock, and the period of the live message
        await browser("run", script="new Promise((done) => setTimeout(done, 1000))")
    assert await browser("run", script="document.querySelector('#main').innerText") == before
    assert await browser("sent") == []
    await browser.press("p")
    await until(lambda: browser("run", script="document.querySelector('.flow [data-state=completed] .v')?.innerText"), is_="6")
    await browser.check()


async def test_a_page_survives_the_server(shop, serving, browser):
    await browser("open", url=shop.page("overview"))
    await browser.see(".vital", "Slots busy")
    port = shop.server.port
    await shop.server.stop()
    await browser.see(".live", "Offline since")
    await browser.see("#notices", "Live updates are interrupted")
    assert await browser("count", selector=".vital") == 6
    again = await Server(shop.server._asgi, serving.stack).start(port=port)
    serving.stack.push_async_callback(again.stop)
    await browser.gone("#notices .callout")


async def test_two_viewers_act_on_one_job_at_once(shop, browser):
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    for page in ("a", "b"):
        await browser("open", url=shop.page(f"jobs/{job_id}"), page=page)
        await browser.see(".badge", "running", page=page)
        await browser.button("Cancel", page=page)
        await browser.see("dialog h2", "Cancel this job?", page=page)
    await asyncio.gather(*(browser.button("Cancel the job", page=page) for page in ("a", "b")))
    for page in ("a", "b"):
        await browser.see(".badge", "canceled", page=page)
        await browser.see(".toast", page=page)
    told = [await browser.see(".toast", page=page) for page in ("a", "b")]
    assert sorted("is canceled" in text for text in told) == [False, True] or all("canceled" in text for text in told)
    await shop.until_state(job_id, "canceled")
    for page in ("a", "b"):
        await browser.check(page=page)


AT_END = (
    "(() => { const log = document.querySelector('ol.log'); return log.scrollHeight - log.scrollTop - log.clientHeight < 24; })()"
)


async def test_a_log_follows_its_end_until_someone_scrolls_up(shop, browser, sql):
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    [(fence,)] = sql("select fence from tenure.jobs where id = %s", job_id)

    def add(first, last):
        lines = [{"at": None, "level": "info", "message": f"line {n}", "fields": {}} for n in range(first, last + 1)]
        sql(
            "insert into tenure.logs (job_id, fence, first_line, last_line, lines) values (%s, %s, %s, %s, %s)",
            *(job_id, fence, first, last, json.dumps(lines)),
        )

    add(2, 90)
    await browser("open", url=shop.page(f"jobs/{job_id}"))
    await browser.see(".log", "line 90")
    await until(lambda: browser("run", script=AT_END))
    add(91, 120)
    await browser.see(".log", "line 120")
    await until(lambda: browser("run", script=AT_END))
    await browser("run", script="document.querySelector('ol.log').scrollTop = 100")
    await browser.see("footer button", "Follow new lines")
    add(121, 150)
    await browser.see(".log", "line 150")
    assert await browser("run", script="document.querySelector('ol.log').scrollTop") == 100
    await browser.button("Follow new lines")
    await until(lambda: browser("run", script=AT_END))
    await browser.check()


async def test_an_answer_does_not_undo_what_a_message_said(shop, browser):
    """The report of a running job, which was read before the job ended and arrives after the message about its end."""
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    await browser("open", url=shop.page(f"jobs/{job_id}"))
    await browser.see(".badge", "running")
    await browser(
        "run",
        script="""(() => {
          const real = globalThis.fetch;
          globalThis.fetch = async (...asked) => {
            const answer = await real(...asked);
            if (String(asked[0]).endsWith("/report") && !globalThis.__held) {
              const copy = await answer.clone().json();
              if (copy.job.state !== "running") return answer;
              globalThis.__held = true;
              await new Promise((go) => { globalThis.__go = go; });
            }
            return answer;
          };
        })()""",
    )
    await until(lambda: browser("run", script="Boolean(globalThis.__held)"))
    shop.finish()
    await browser.see(".badge", "completed")
    await browser("run", script="globalThis.__go()")
    for _ in range(3):
        await browser("run", script="new Promise((done) => requestAnimationFrame(done))")
        assert "completed" in await browser("texts", selector=".job-head .badge")
    await browser.check()
