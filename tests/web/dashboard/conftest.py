"""The dashboard in a real Chromium, on a real server, with jobs that tests control."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tenure import Context, Continue, Fail, Retry, Tenure, WorkflowContext
from tests.web.dashboard.browser import Browser, BrowserProcess, browser_process, pages_in
from tests.web.dashboard.shop import Shop
from tests.web.serving import Serving


@pytest.fixture(scope="session")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserProcess]:
    with browser_process(tmp_path_factory.mktemp("browser")) as process:
        yield process


@pytest.fixture
async def browser(shared_browser: BrowserProcess) -> AsyncIterator[Browser]:
    async with pages_in(shared_browser) as opened:
        yield opened


@pytest.fixture
def readable_folder(tmp_path: Path) -> Path:
    """For an embedded server: as root, it runs under another account, which must be able to enter."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    return tmp_path


@pytest.fixture
async def shop(app: Tenure, serving: Serving) -> AsyncIterator[Shop]:
    """A shop whose jobs do what the tests tell them, with a worker and a server that is open to this machine."""
    gates: dict[str, asyncio.Event] = {}

    @app.job(queue="reports", max_attempts=5)
    async def export_report(ctx: Context, report: str, rows: int = 10, urgent: bool = False) -> dict[str, int]:
        """Exports one report as a file."""
        ctx.log.info("rows read", rows=rows)
        ctx.progress(40, "40 of 100 sheets")
        await gates.setdefault(report, asyncio.Event()).wait()
        return {report: rows}

    @app.job(queue="mail")
    async def send_receipt(order: int, to: str = "ann@example.org") -> str:
        return f"sent {order} to {to}"

    @app.job(queue="payments", retry=Retry(max_attempts=6, initial="1h", max_backoff="1h"))
    async def charge_card(order: int) -> None:
        raise ConnectionError(f"no answer from bank-{order % 7}.example.net for order {order}")

    @app.job(queue="payments", max_attempts=1)
    async def render_invoice(order: int, template: str = "plain") -> None:
        raise KeyError(f"order {order} has no address")

    @app.job(queue="payments")
    async def refuse(order: int) -> None:
        raise Fail(f"order {order} is fraud")

    @app.job(queue="stock")
    async def ship_order(order: int) -> dict[str, int]:
        await gates.setdefault(f"ship {order}", asyncio.Event()).wait()
        return {"shipped": order}

    @app.job(queue="stock")
    async def reserve_order(order: int) -> Continue[dict[str, int]]:
        return Continue(ship_order, order)

    @app.workflow(queue="stock")
    async def fulfil_order(ctx: WorkflowContext, order: int) -> str:
        reserved = await ctx.step("reserve_stock", lambda: f"res_{order}")
        await ctx.gather(ctx.step("print_label", lambda: {"label": order}), ctx.call(send_receipt, order))
        ctx.set_status("packed")
        decided = await ctx.wait_for_signal("approve", timeout="2d")
        parcel = await ctx.wait_for("parcel.scanned", key=f"order_{order}", timeout="1d")
        return f"{reserved} {decided} {parcel}"

    server = await serving.serve(open_locally=True)
    async with app.running():
        yield Shop(app, server, gates)
        for gate in gates.values():  # what still runs may end: the worker waits for it
            gate.set()
