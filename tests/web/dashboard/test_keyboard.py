"""Everything with the keyboard alone."""

from __future__ import annotations

import pytest

from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOCUSED = "document.activeElement?.dataset?.id ?? document.activeElement?.id ?? document.activeElement?.tagName"


async def test_a_job_is_found_opened_and_canceled(shop, browser):
    job_id = await shop.export()
    await shop.until_state(job_id, "running")
    await shop.start("send_receipt", 2)
    await browser("open", url=shop.url)
    await browser.see("h1", "Overview")
    await browser.press("g", "j")
    await browser.see("h1", "Jobs")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=3)
    await browser.press("j", "j", "j")
    assert await browser("run", script=FOCUSED) == job_id
    await browser.press("x")
    await browser.see(".bulk", "1 selected")
    await browser.press("k", "X")
    await browser.see(".bulk", "2 selected")
    await browser.press("Escape")
    await browser.see(".bulk", "Select jobs")
    await browser.press("j", "Enter")
    await browser.see("h2.title", "export_report")
    await browser.press("c")
    await browser.see("dialog h2", "Cancel this job?")
    await browser("type", value="by keyboard")
    await browser.press("Enter")
    await browser.see(".badge", "canceled")
    await browser.check()


async def test_the_palette_finds_pages_queues_and_jobs(shop, browser):
    [job_id] = await shop.start("send_receipt")
    await shop.until_state(job_id, "completed")
    await browser("open", url=shop.url)
    await browser.see(".vital", "Slots busy")
    await browser.press("/")
    await browser.see(".palette input")
    await browser("type", value="lead")
    await browser.see(".palette li", "Leaders")
    assert await browser.axe() == []
    await browser.press("Enter")
    await browser.see("h1", "Leaders")
    await browser.press("Control+k")
    await browser.see(".palette input")
    await browser("type", value=job_id)
    await browser.press("Enter")
    await browser.see("h2.title", "send_receipt")
    await browser.press("Control+k")
    await browser.see(".palette input")
    await browser("type", value="pause queue mail")
    await browser.press("Enter")
    await browser.see(".toast", "Queue mail is paused")
    await browser.check()


async def test_keys_are_listed_and_can_be_switched_off(shop, browser):
    await browser("open", url=shop.url)
    await browser.see("h1", "Overview")
    await browser.press("?")
    await browser.see("dialog h2", "Keyboard")
    assert await browser.axe() == []
    await browser.click("#single-keys")
    await browser.press("Escape")
    await browser.press("g", "j")
    assert await browser("run", script="location.hash") in ("", "#/overview")
    await browser.press("Control+k")
    await browser.see(".palette input")


async def test_theme_zone_and_focus(shop, browser):
    await shop.start("send_receipt", 2)
    await browser("open", url=shop.page("jobs"))
    await browser.see("tr[data-row]")
    chosen = "document.documentElement.dataset.theme ?? 'system'"
    seen = []
    for _ in range(4):
        seen.append(await browser("run", script=chosen))
        await browser.press("t")
    assert seen == ["system", "dark", "light", "system"]
    dark = await browser("run", script="getComputedStyle(document.body).backgroundColor")
    await browser.press("t")
    assert await browser("run", script="getComputedStyle(document.body).backgroundColor") != dark
    await browser.press("Tab")
    assert await browser("run", script="document.activeElement.className") == "skip"
    await browser.press("Enter")
    assert await browser("run", script=FOCUSED) == "main"
    await browser("open", url=shop.page("jobs"))
    assert await browser("run", script=chosen) == "light", "it is remembered"


async def test_a_job_is_found_by_a_part_of_its_id(shop, browser):
    [job_id] = await shop.start("send_receipt")
    await shop.until_state(job_id, "completed")
    await browser("open", url=shop.page("overview"))
    await browser.see(".vital .v")
    for typed in (job_id[:30], job_id[-8:]):
        await browser.press("Control+k")
        await browser("fill", selector=".palette input", value=typed)
        await browser.see(".palette li", job_id)
        await browser.press("Enter")
        await browser.see("h2.title", "send_receipt")
        await browser("go", hash="#/jobs")
        await browser("fill", selector=".filter input", value=typed)
        await browser.press("Enter")
        await browser.see("h2.title", "send_receipt")
    await browser("go", hash="#/jobs")
    await browser("fill", selector=".filter input", value="id:0000000")
    await browser.press("Enter")
    await browser.see(".error", "No job has an id that begins with 0000000")
    await browser.check()


async def test_a_form_is_filled_and_sent(shop, browser):
    await browser("open", url=shop.page("dispatch/send_receipt"))
    await browser.see("label", "order")
    await browser("run", script="document.querySelector('#arg-order').focus()")
    await browser("type", value="41")
    await browser("run", script="document.querySelector('#arg-to').focus()")
    await browser("type", value="bob@example.org")
    await browser.press("Control+Enter")
    await browser.see(".toast", "is enqueued")

    async def outputs():
        return [job.output for job in (await shop.app.client().list(kind="send_receipt")).jobs]

    await until(outputs, is_=["sent 41 to bob@example.org"])
    await browser.check()
