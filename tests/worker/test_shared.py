"""What handlers share: database connections and HTTP clients."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tenure import Context


class Greeter(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


@pytest.fixture
def greeter():
    server = HTTPServer(("127.0.0.1", 0), Greeter)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_one_http_client_serves_all_handlers(app, greeter):
    clients = set()

    @app.job
    async def ask(ctx: Context) -> str:
        clients.add(ctx.http())
        return (await ctx.http().get(greeter)).text

    @app.job
    def ask_plainly(ctx: Context) -> str:
        clients.add(ctx.http_sync())
        return ctx.http_sync().get(greeter).text

    async with app.running():
        for job in (ask, ask, ask_plainly, ask_plainly):
            assert await (await job.enqueue()).result(10) == "hello"
    assert len(clients) == 2


async def test_a_pooled_connection_commits_when_its_block_ends_well_and_rolls_back_when_not(app, sql):
    sql("create table public.seen (n integer)")

    @app.job
    async def write(ctx: Context, n: int) -> None:
        async with ctx.db() as conn:
            await conn.execute("insert into public.seen values (%s)", [n])
            if n < 0:
                raise ValueError(n)

    @app.job
    def write_plainly(ctx: Context, n: int) -> None:
        with ctx.db() as conn:
            conn.execute("insert into public.seen values (%s)", [n])
            if n < 0:
                raise ValueError(n)

    async with app.running():
        for job in (write, write_plainly):
            await (await job.enqueue(1)).result(10)
            with pytest.raises(Exception, match="ValueError"):
                await (await job.using(max_attempts=1).enqueue(-1)).result(10)
    assert sql("select n from public.seen") == [(1,), (1,)]
