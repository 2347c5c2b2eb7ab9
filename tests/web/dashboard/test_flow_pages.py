"""Chains and workflows: what their pages show, live, and every action on them."""

from __future__ import annotations

import pytest

from tests.waiting import until
from tests.web.dashboard.test_pages import SIDEWAYS, WIDTHS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = """[...document.querySelectorAll(".graph .node")].map((node) => {
  return [node.dataset.name, node.dataset.state];
})"""


async def nodes(browser) -> dict[str, str]:
    """The states of the nodes of the graph, by name."""
    return dict(await browser("run", script=NODES))


async def fits_everywhere(browser) -> None:
    for width, theme in WIDTHS.items():
        await browser("theme", name=theme)
        await browser("size", width=width, height=900)
        assert await browser("run", script=SIDEWAYS) <= 0, width
        assert await browser.axe() == [], (theme, width)


async def test_a_workflow_shows_its_steps_and_receives_what_it_waits_for(shop, browser):
    job_id = await shop.fulfil()
    await browser("open", url=shop.page("workflows"))
    await browser.see(f"tr[data-id='{job_id}']", "waits for the signal approve")
    await browser.click("a.name", text="fulfil_order")
    await browser.see(".callout h2", "Waits for the signal approve")
    await browser.see("aside", "packed")
    done = {"reserve_stock": "completed", "print_label": "completed", "send_receipt": "completed"}
    assert await nodes(browser) == {**done, "approve": "waiting"}
    await fits_everywhere(browser)
    await browser("fill", selector="aside textarea", value="yes")
    await browser.button("Send the signal")
    await browser.see(".toast", "The payload is not JSON")
    await browser("fill", selector="aside textarea", value='"yes"')
    await browser.button("Send the signal")
    await browser.see(".callout h2", "Waits for the event parcel.scanned with key order_7")
    await browser("fill", selector="aside textarea", value='{"depot": "BER-2"}')
    await browser.button("Send the event")
    await browser.see(".badge", "completed")
    await browser.see("pre.code", "res_7 yes {'depot': 'BER-2'}")
    assert await nodes(browser) == {**done, "approve": "completed", "parcel.scanned": "completed"}
    await browser.check()


HOLD_ANSWERS = """const ask = fetch;
globalThis.__held = 0;
globalThis.__released = new Promise((release) => { globalThis.__release = release; });
globalThis.fetch = async (...given) => {
  const answer = await ask(...given);
  if (new RegExp("/workflows/[^/]+$").test(answer.url)) {
    globalThis.__held += 1;
    await globalThis.__released;
  }
  return answer;
}; 0"""

RELEASE_ANSWERS = """globalThis.__release();
new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 100))"""


async def test_an_old_answer_does_not_undo_what_a_message_said(shop, browser):
    job_id = await shop.fulfil()
    await browser("open", url=shop.page(f"workflows/{job_id}"))
    await browser.see(".callout h2", "Waits for the signal approve")
    await browser("run", script=HOLD_ANSWERS)
    await browser.button("Send signal…")
    await browser("fill", selector="#ask-name", value="unknown")
    await browser.button("Send it")

    async def held() -> bool:
        return await browser("run", script="globalThis.__held") > 0

    await until(held)  # it was asked for while the workflow waits for approve
    await shop.app.workflows.signal(job_id, "approve", "yes")
    await browser.see(".callout h2", "Waits for the event parcel.scanned")
    await browser("run", script=RELEASE_ANSWERS)
    assert "parcel.scanned" in await browser.see(".callout h2")
    await browser.check()


async def test_a_step_is_chosen_and_the_workflow_forked_from_it(shop, browser):
    job_id = await shop.fulfil()
    await browser("open", url=shop.page(f"workflows/{job_id}"))
    await browser.click(".graph .node", text="print_label")
    await browser.see("aside pre.code", '"label": 7')
    await browser.button("List")
    await browser.see("table a.name", "print_label")
    assert await browser.axe() == []
    await browser.button("Fork from here…")
    assert await browser("run", script="document.querySelector('#ask-step').value") == "print_label"
    await browser.button("Fork it")
    await browser.see(".toast", "The fork will run")
    await browser.button("Open")
    await browser.see("aside dd a", job_id[-8:])
    [fork] = [job for job in await shop.app.workflows.list(kind="fulfil_order") if str(job.id) != job_id]
    await shop.until_open(str(fork.id), "approve")
    await browser.see(".callout h2", "Waits for the signal approve")
    await browser.check()


async def test_a_workflow_is_signaled_from_the_dialog_and_canceled(shop, browser):
    job_id = await shop.fulfil()
    await browser("open", url=shop.page(f"workflows/{job_id}"))
    await browser.button("Send signal…")
    await browser("fill", selector="#ask-name", value="approve")
    await browser.button("Send it")
    await browser.see(".callout h2", "parcel.scanned")
    await browser.button("Resume…")
    await browser.button("Resume it")
    await browser.see(".toast", "not held")
    await browser.press("c")
    await browser("fill", selector="#ask-reason", value="sold out")
    await browser.button("Cancel the workflow")
    await browser.see(".badge", "canceled")
    await shop.until_state(job_id, "canceled")
    assert "sold out" in (await shop.app.client().find(job_id)).error
    await browser.check()


async def test_a_held_workflow_is_resumed(shop, browser, sql):
    job_id = await shop.fulfil()
    sql("""update tenure.jobs set system = coalesce(system, '{}') || '{"held": "the code asks for pack, not for approve"}'""")
    await browser("open", url=shop.page("workflows"))
    await browser.see(f"tr[data-id='{job_id}']", "held: the code asks for pack")
    await browser("go", hash=f"#/workflows/{job_id}")
    await browser.see(".callout", "It is held until a person decides")
    assert await browser.axe() == []
    await browser.button("Resume…")
    await browser.button("Resume it")
    await browser.see(".toast", "continues as soon as a slot is free")
    await browser.see(".callout h2", "Waits for the signal approve")
    await browser.check()


async def test_a_chain_shows_its_links_live(shop, browser):
    chain_id = await shop.reserve()
    behind = await shop.app.jobs["send_receipt"].using(after=[chain_id]).enqueue(9)
    await browser("open", url=shop.page("workflows/chains"))
    await browser.click("a.name", text="reserve_order")
    await browser.see(".callout h2", "Link 2, ship_order: running for")
    await until(lambda: nodes(browser), is_={"reserve_order": "completed", "ship_order": "running", "send_receipt": "blocked"})
    await fits_everywhere(browser)
    shop.finish("ship 7")
    await browser.see(".badge", "completed")
    await browser.see("aside pre.code", '"shipped": 7')
    await shop.until_state(str(behind.id), "completed")
    await browser.check()


async def test_a_chain_is_completed_and_deleted(shop, browser):
    chain_id = await shop.reserve()
    await shop.app.jobs["send_receipt"].using(after=[chain_id], on_blocker_failure="wait").enqueue(9)
    await browser("open", url=shop.page(f"workflows/chains/{chain_id}"))
    await browser.button("Complete…")
    await browser("fill", selector="#ask-output", value='{"shipped": 8}')
    await browser.button("Complete it")
    await browser.see(".toast", "The chain is completed")
    await browser.see(".badge", "completed")
    assert (await shop.app.chains.get(chain_id)).output == {"shipped": 8}
    await browser.button("Delete…")
    await browser.button("Delete the chain")
    await browser.see(".toast", "1 chain is deleted")
    await browser.see("[aria-pressed=true]", "Chains and groups")
    await browser.check()


async def test_a_group_shows_its_members(shop, browser):
    group = await shop.app.gather([shop.app.jobs["export_report"].call(name) for name in ("a", "b")])
    members = (await shop.app.client().list(kind="export_report")).jobs
    await browser("open", url=shop.page(f"workflows/chains/{group.id}"))
    await browser.see(".callout h2", "Waits for 2 members to end")
    shop.finish("a")
    await browser.see("aside", "1 of 2 have ended")
    assert await browser.axe() == []
    await browser("go", hash=f"#/jobs/{members[0].id}")
    await browser.see(".links", "a member of the group")
    shop.finish("b")
    await browser.click(".links a", text="group")
    await browser.see(".badge", "completed")
    await browser.check()


async def test_a_job_shows_the_chain_and_the_workflow_that_it_belongs_to(shop, browser):
    chain_id = await shop.reserve()
    await browser("open", url=shop.page(f"jobs/{chain_id}"))
    await browser.see(".links", "link 1 of 2 in the chain")
    workflow_id = await shop.fulfil()
    [receipt] = (await shop.app.client().list(kind="send_receipt")).jobs
    await browser("go", hash=f"#/jobs/{receipt.id}")
    await browser.see(".links", "a step of the workflow")
    await browser.click(".links a", text="fulfil_order")
    await browser.see("h2.title", "fulfil_order")
    await browser("click", role="link", name="Open as job")
    await browser("click", role="link", name="Open as workflow")
    await until(lambda: browser("run", script="location.hash"), is_=f"#/workflows/{workflow_id}")
    await browser.check()


async def test_lists_are_filtered_by_state_and_kind(shop, browser):
    await shop.fulfil()
    await shop.reserve()
    await browser("open", url=shop.page("workflows?state=completed"))
    await browser.see(".empty h2", "No workflow matches")
    await browser.click("nav.tabs a", text="waiting")
    await browser.see("tr[data-row]", "fulfil_order")
    await browser.button("Chains and groups")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=1)
    await browser.click("label", text="Also jobs without another link")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=3)
    await browser("choose", selector="select", value="reserve_order")
    await until(lambda: browser("count", selector="tr[data-row]"), is_=1)
    await browser.check()


async def test_with_the_keyboard_alone(shop, browser):
    job_id = await shop.fulfil()
    await browser("open", url=shop.url)
    await browser.see("h1", "Overview")
    await browser.press("g", "w")
    await browser.see("tr[data-row]", "fulfil_order")
    await browser.press("j", "Enter")
    await browser.see("h2.title", "fulfil_order")
    await browser("run", script="document.querySelector('.graph .node').focus()")
    await browser.press("Tab")
    name = await browser("run", script="document.activeElement.dataset.name")
    assert name in ("print_label", "send_receipt")
    await browser.press("Enter")
    await browser.see("aside h2", name)
    await browser("run", script="document.querySelector('aside textarea').focus()")
    await browser("type", value='"yes"')
    await browser.press("Tab", "Enter")
    await browser.see(".callout h2", "parcel.scanned")
    await browser.press("c")
    await browser.press("Enter")
    await browser.see(".badge", "canceled")
    await shop.until_state(job_id, "canceled")
    await browser.check()
