"""The protections S1 and S3 to S16 of the threat review, each as it shows from outside. S2 and S9: test_tokens.py."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import json
import re
import socket
import tomllib
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from starlette.datastructures import QueryParams

import tenure.web
from tenure import ConfigError, Context, Limit, Retry, Tenure, WorkflowContext
from tenure.store.migrator import roles_sql
from tenure.web import Principal, create_app, tracker_token
from tenure.web.api.job_filters import JobsQuery
from tenure.web.http_protocol import HttpProtocol
from tenure.web.live.followed import version_of
from tenure.web.openapi import document
from tenure.web.problems import Problem
from tenure.web.reader_deadline import LEAST_TAKEN, ReaderDeadline, unsent
from tenure.web.request_parsing import parse_query
from tenure.web.route_table import ROUTES
from tenure.web.security import secret_names
from tenure.web.security.headers import HEADERS
from tenure.web.security.hosts import hostname, is_loopback
from tenure.web.security.origins import is_same_origin
from tenure.web.security.redaction import REDACTED, Redaction, refuse_redacted
from tenure.web.server import WebServerOptions, serve
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.planted_secrets import PAYLOAD
from tests.store.database import Database
from tests.waiting import until
from tests.web.serving import Server
from tests.web.test_jobs import send

SOURCE = Path(tenure.web.__file__).parent
ROOT = Path(__file__).parents[2]


# S1: loopback, and no other address without auth


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
async def test_s1_other_addresses_are_refused_while_no_token_exists(app, host):
    with pytest.raises(ConfigError, match="tenure tokens create"):
        await serve(app, WebServerOptions(host=host, port=0), lambda _: None)
    await app.close()


async def test_s1_a_local_server_without_tokens_is_open_to_this_machine_only_and_closes_with_the_first_token(
    jobs, serving, monkeypatch
):
    monkeypatch.setattr("tenure.web.security.tokens.OPEN_RECHECK", 0.0)
    server = await serving.serve(open_locally=True, allowed_hosts=[])
    web = await server.client()
    sent = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    assert (sent.status_code, sent.json()["job"]["enqueued_by"]) == (202, "local")
    for header in ("x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-host"):
        assert (await web.get("/jobs", headers={header: "203.0.113.1"})).status_code == 401
    assert (await web.post("/queues/x/pause", headers={"origin": "https://evil.example"})).status_code == 403
    await serving.token()
    assert (await web.get("/jobs")).status_code == 401


async def test_s1_nothing_can_be_changed_without_a_token_once_the_first_one_was_created(jobs, serving, monkeypatch):
    """Reads may use the answer of a moment ago."""
    monkeypatch.setattr("tenure.web.security.tokens.OPEN_RECHECK", 3600.0)
    server = await serving.serve(open_locally=True, allowed_hosts=[])
    web = await server.client()
    assert (await web.get("/jobs")).status_code == 200
    await serving.token()
    refused = await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})
    assert refused.status_code == 401
    assert (await web.get("/jobs")).status_code == 401


async def test_s1_a_page_of_an_allowed_origin_is_not_a_user_of_this_machine(jobs, serving):
    """It runs in a browser of this machine, so that it had all rights as long as no token exists."""
    server = await serving.serve(open_locally=True, allowed_origins=["https://shop.example"])
    web = await server.client()
    assert (await web.get("/jobs", headers={"origin": server.url})).status_code == 200
    shop = {"origin": "https://shop.example"}
    assert (await web.get("/jobs", headers=shop)).status_code == 401
    assert (await web.post("/queues/x/pause", headers=shop)).status_code == 401


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
async def test_s1_a_local_server_stays_closed_when_its_last_token_ends(jobs, serving, sql, end):
    await serving.token()
    sql(f"update tenure.tokens set {end} = now() - interval '1 second'")
    server = await serving.serve(open_locally=True, allowed_hosts=[])
    refused = await (await server.client()).get("/jobs")
    assert (refused.status_code, "tenure tokens create" in refused.json()["detail"]) == (401, True)


async def test_s1_a_mounted_app_is_closed_without_tokens(jobs, serving):
    server = await serving.serve(create_app(serving.app))
    assert (await (await server.client()).get("/jobs")).status_code == 401


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost.evil.example", False),
        ("0.0.0.0", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_s1_what_is_loopback(name, local):
    assert is_loopback(name) is local


# S3: origin checks and JSON only (sessions: test_tokens.py)


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "SELF"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "SELF"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site", "origin": "https://other.example"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "SELF"}, False),
        ({"cookie": "theirs=1"}, True),
        ({"cookie": "theirs=1", "authorization": ""}, False),
        ({"origin": "https://shop.example", "sec-fetch-site": "cross-site"}, True),
    ],
)
async def test_s3_which_pages_may_change_something(jobs, serving, headers, allowed):
    server = await serving.serve(allowed_origins=["https://shop.example"])
    web = await server.client(await serving.token())
    given = {name: server.url if value == "SELF" else value for name, value in headers.items()}
    if "authorization" in given:
        del given["authorization"], web.headers["authorization"]
    answer = await web.post("/queues/x/pause", headers=given)
    assert (answer.status_code == 200) is allowed, answer.text
    if not allowed:
        assert answer.json()["type"] == "urn:tenure:problem:origin"


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://a.example", "a.example", True),
        ("http://a.example", "A.example:80", True),
        ("https://a.example:8443", "a.example:8443", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://a.example:81", "a.example", False),
        ("http://a.example.evil", "a.example", False),
        ("http://user@a.example", "evil.example", False),
        ("http://a.example:x", "a.example", False),
        ("file://", "", False),
        ("null", "null", False),
    ],
)
def test_s3_the_same_origin(origin, host, same):
    assert is_same_origin(origin, host) is same


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_s3_forms_are_refused(jobs, serving, content_type):
    web = await serving.admin()
    body = json.dumps({"args": {"format": "csv"}})
    answer = await web.post("/jobs/export_users/dispatch", content=body, headers={"content-type": content_type})
    assert answer.status_code == 415


# S4: no CORS, unless a site is listed


async def test_s4_other_sites_get_no_cors_headers_unless_listed(jobs, serving):
    server = await serving.serve(allowed_origins=["https://shop.example"])
    web = await server.client(await serving.token())
    ask = {"access-control-request-method": "POST"}
    refused = await web.options("/jobs", headers={"origin": "https://evil.example", **ask})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (405, False)
    allowed = await web.options("/jobs", headers={"origin": "https://shop.example", **ask})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, "https://shop.example")
    answer = await web.get("/jobs", headers={"origin": "https://shop.example"})
    assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == ("https://shop.example", "Origin")
    assert "access-control-allow-credentials" not in {**answer.headers, **allowed.headers}
    plain = await (await serving.serve()).client(await serving.token())
    assert "access-control-allow-origin" not in (await plain.get("/jobs", headers={"origin": "https://shop.example"})).headers


@pytest.mark.parametrize(
    "origin", ["*", "https://*.example", "shop.example", "https://shop.example/", "https://shop.example/x", ""]
)
def test_s4_an_origin_is_exact(app, origin):
    with pytest.raises(ConfigError):
        create_app(app, allowed_origins=[origin])


# S5: test_live.py. S6: headers


async def test_s6_every_answer_has_strict_headers(jobs, serving):
    web = await serving.admin()
    answers = [await web.get(path) for path in ("/jobs", "/nonsense", "/healthz", "/metrics", "/openapi.json", "/jobs/x")]
    answers += [
        await web.post("/jobs"),
        await web.request("TRACE", "/jobs"),
        await web.get("/jobs", headers={"authorization": "x"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"


def assert_is_a_problem(answer: bytes, status: int) -> None:
    """An answer as it was sent."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines)
    assert first.split()[1] == str(status), answer
    assert fields["content-type"] == "application/problem+json", answer
    assert fields.items() >= {(name.lower(), value.lower()) for name, value in HEADERS.items()}
    assert json.loads(body)["status"] == status


@pytest.mark.parametrize("method", ["FOO", "PROPFIND", "X" * 500])
@pytest.mark.parametrize(
    "path", ["/_api/jobs", "/_api/jobs/x/cancel", "/", "/static/tenure.js", "/_api/openapi.json", "/nonsense"]
)
async def test_s6_a_method_that_no_route_has_gets_a_problem_document(jobs, serving, method, path):
    server = await serving.serve()
    answer = await raw_answer(server, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert_is_a_problem(answer, 404 if path == "/nonsense" else 405)


async def raw_answer(server, sent: bytes) -> bytes:
    """Until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


async def test_s6_what_is_not_http_gets_a_problem_document(jobs, serving):
    server = await serving.serve()
    assert_is_a_problem(await raw_answer(server, b"\x16\x03\x01\x02\x00\r\n\r\n"), 400)
    assert_is_a_problem(await raw_answer(server, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400)
    # Of a body that was announced but is not one, after the answer to its head: there is nothing more to say.
    chunked = b"POST /_api/queues/x/pause HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(chunked)
    assert b" 401 " in await asyncio.wait_for(reader.readline(), 20)
    writer.write(b"zz\r\n")
    assert b" 400 " not in await asyncio.wait_for(reader.read(), 20)
    writer.close()


@pytest.mark.parametrize(
    "more",
    [
        b"Content-Length: 1\r\n\r\nx",
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"X: " + b"x" * 9000 + b"\r\n\r\n",
        b"".join(b"X-%d: x\r\n" % n for n in range(200)) + b"\r\n",
    ],
    ids=["body", "chunks", "long", "many"],
)
async def test_s6_a_handshake_that_cannot_be_read_is_answered_and_ends(jobs, serving, more):
    """Such connections stayed open for ever, and took the places of others."""
    server = await serving.serve()
    head = b"GET /_api/live HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    assert_is_a_problem(await raw_answer(server, head + more), 400)
    await until(lambda: not connections_of(server))


async def test_s6_a_full_server_answers_with_a_problem_document(jobs, serving):
    server = await Server(WebApp(serving.app, WebOptions()), serving.stack).start(most_connections=2)
    serving.stack.push_async_callback(server.stop)
    asked = b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
    await until(lambda: len(connections_of(server)), is_=2)
    answer = await raw_answer(server, asked)
    assert_is_a_problem(answer, 503)
    assert b"retry-after: 1\r\n" in answer.lower()
    for _, writer in held:
        writer.close()
    await until(lambda: not connections_of(server))
    assert b" 200 " in (await raw_answer(server, asked))


async def test_s6_hostile_text_is_never_markup(app, serving):
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"

    @app.job(name=hostile, queue=hostile, max_attempts=1)
    async def attack(text: str) -> None:
        raise ValueError(hostile)

    web = await serving.admin()
    job_id = (await app.enqueue(hostile, {"text": hostile})).id
    async with app.running():
        await until(lambda: over(web, job_id))
    page = await web.get(f"/jobs/{job_id}/report", headers={"accept": "text/html"})
    assert "<script" not in page.text
    assert "<img" not in page.text
    for path in (f"/jobs/{job_id}", "/queues", "/kinds", "/metrics"):
        assert "html" not in (await web.get(path)).headers["content-type"]


async def over(web, job_id):
    return (await web.get(f"/jobs/{job_id}")).json()["over"]


# S7: the Host header


async def test_s7_foreign_names_are_refused(jobs, serving):
    server = await serving.serve(allowed_hosts=["jobs.example"])
    web = await server.client(await serving.token())
    for host in ("jobs.example", "JOBS.example:443", "127.0.0.1:1", "localhost", "[::1]:8080", "192.0.2.1"):
        assert (await web.get("/session", headers={"host": host})).status_code == 200, host
    for host in (
        "[::1].evil.example",
        "[::1",
        "evil.example",
        "jobs.example.evil.example",
        "localhost.evil.example",
        "",
        "jobs.example@evil.example",
    ):
        assert (await web.get("/healthz", headers={"host": host})).status_code in (400, 421), host


async def test_s7_live_connections_under_foreign_names_are_refused(jobs, serving):
    server, token = await serving.serve(allowed_hosts=["jobs.example"]), await serving.token()
    for host, status in (("jobs.example", 101), ("evil.example", 403)):
        asked = (
            f"GET /_api/live HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nOrigin: http://{host}\r\n"
            f"Authorization: Bearer {token}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(asked.encode())
        assert (await asyncio.wait_for(reader.readline(), 10)).split()[1] == str(status).encode()
        writer.close()


def test_s7_the_name_in_a_host_header():
    assert [hostname(host) for host in ("A.b:80", "a.b", "[::1]:80", "::1", "[::1]")] == ["a.b", "a.b", "::1", "::1", "::1"]


# S8: sizes and times


async def test_s8_large_and_deep_bodies_are_refused(jobs, serving):
    web = await serving.admin()
    headers = {"content-type": "application/json"}
    path = "/jobs/export_users/dispatch"
    assert (await web.post(path, content=b"x" * (1024 * 1024 + 1), headers=headers)).status_code == 413

    async def endless():
        for _ in range(40):
            yield b"x" * 65536

    assert (await web.post(path, content=endless(), headers=headers)).status_code == 413
    deep = b'{"args":' + b"[" * 100 + b"]" * 100 + b"}"
    assert (await web.post(path, content=deep, headers=headers)).status_code == 422
    for body in (b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"args": {"format": "\\u0000"}}', b'{"args": {"format": NaN}}'):
        assert (await web.post(path, content=body, headers=headers)).status_code == 422, body


async def test_s8_large_headers_are_refused(jobs, serving):
    web = await serving.admin()
    assert (await web.get("/session", headers={"x-large": "x" * 17_000})).status_code == 431


async def test_s8_large_names_of_hosts_are_not_remembered(jobs, serving):
    """A thousand are, so that strangers could make the server keep 60 MB and more."""
    web = await (await serving.serve(allowed_hosts=["jobs.example"])).client()
    before = is_loopback.cache_info().currsize
    assert (await web.get("/healthz", headers={"host": "x" * 17_000})).status_code == 431
    assert is_loopback.cache_info().currsize == before


async def test_s8_a_long_address_counts_as_the_headers_do(jobs, serving):
    """It was not counted, and a query of 9,000 names kept the event loop busy for seconds."""
    web = await serving.admin()
    for path in (f"/session?{'x' * 17_000}", f"/{'x' * 17_000}", f"/jobs?{'&'.join(f'n{n}=' for n in range(4000))}"):
        answer = await web.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (
            431, "address and headers have more than 16384 bytes together: send less"
        ), path  # fmt: skip


async def test_s8_a_query_has_a_bounded_number_of_parameters(jobs, serving):
    web = await serving.admin()
    assert (await web.get("/chains", params={"state": ["pending"] * 100})).status_code == 200
    refused = await web.get("/chains", params={"state": ["pending"] * 101})
    [error] = refused.json()["errors"]
    assert (refused.status_code, error["path"]) == (422, "query")
    assert error["message"] == "the query has 101 parameters, but may have 100: give fewer"


def test_s8_a_query_is_read_in_a_bounded_number_of_passes():
    class Counted(list):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    params = QueryParams([(f"n{n}", "1") for n in range(90)])
    params._list = Counted(params._list)
    with pytest.raises(Problem) as caught:
        parse_query(params, JobsQuery)
    assert len(caught.value.errors) == 50
    assert params._list.passes < 5


async def test_s8_a_body_that_does_not_arrive_is_given_up(jobs, serving, monkeypatch):
    monkeypatch.setattr("tenure.web.request_parsing.BODY_WITHIN", 0.2)
    server, token = await serving.serve(), await serving.token()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        f"POST /_api/queues/x/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    assert b"408" in await asyncio.wait_for(reader.readline(), 10)
    writer.close()


@pytest.mark.parametrize(
    ("more", "body"),
    [(b"Content-Length: 4097", b""), (b"Transfer-Encoding: chunked", b"1001\r\n" + b"x" * 4097 + b"\r\n")],
)
async def test_s8_clients_without_a_token_may_send_a_small_body_only(jobs, serving, more, body):
    """It is refused before all of it has arrived: 300 of 1 MiB that never ended made the server grow by 219 MB."""
    server = await serving.serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        b"POST /_api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + more + b"\r\n\r\n" + body
    )
    assert b" 413 " in await reader.readline()
    assert b"the body is larger than 4096 bytes" in await reader.readuntil(b"}")
    writer.close()


def test_s8_only_clients_without_a_token_have_the_small_limit():
    assert {(route.scope is None, route.largest_body) for route in ROUTES} == {(True, 4096), (False, 1024 * 1024)}
    described = document()["paths"]["/_api/session"]["post"]["responses"]
    assert described["413"]["description"] == "The body is larger than 4 KiB."


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /_api/healthz HTTP/1.1\r\nHost: loc",
        b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /",
        b"POST /_api/queues/x/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ],
)
async def test_s8_a_connection_without_a_whole_request_ends(jobs, serving, monkeypatch, sent):
    monkeypatch.setattr("tenure.web.http_protocol.HEAD_WITHIN", 0.3)
    server = await serving.serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    if b"\r\n\r\n" in sent:
        await asyncio.wait_for(reader.readuntil(b"}"), 10)
        writer.write(b"x")  # ends the time that uvicorn waits for the next request
    await asyncio.wait_for(reader.read(), 10)
    assert reader.at_eof()
    writer.close()


def connections_of(server) -> set[object]:
    return server._server.server_state.connections


@pytest.fixture
def narrow_server(monkeypatch):
    """What the kernel would keep for a client is far more than these tests send."""
    made = HttpProtocol.connection_made

    def with_a_small_buffer(protocol, transport):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made(protocol, transport)

    monkeypatch.setattr(HttpProtocol, "connection_made", with_a_small_buffer)
    monkeypatch.setattr("tenure.web.reader_deadline.SEND_WITHIN", 0.2)


async def narrow_connection(server) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", server.port))
    return client


@pytest.mark.parametrize(("requests", "more"), [(500, b""), (1, b"Connection: close\r\n")])
async def test_s8_a_client_that_does_not_read_its_answers_is_disconnected(jobs, serving, narrow_server, requests, more):
    """It held its connection for ever, without a token; also one to which less is left to send than asyncio cares about."""
    server, loop = await serving.serve(), asyncio.get_running_loop()
    with await narrow_connection(server) as client:
        await until(lambda: connections_of(server))
        asked = b"GET /static/tenure.js HTTP/1.1\r\nHost: localhost\r\n" + more + b"\r\n"
        sending = asyncio.create_task(loop.sock_sendall(client, asked * requests))
        await until(lambda: not connections_of(server))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def test_s8_a_live_client_that_does_not_read_is_disconnected(jobs, serving, narrow_server):
    """uvicorn closes it after a ping that is not answered, but sends what is left first, and waits for ever."""
    server, token = await serving.serve(), await serving.token("read")
    connection = await narrow_connection(server)
    live = await server.live(token, max_queue=1, sock=connection)
    await live.send(type="subscribe", topics=[f"{n}{'x' * 50}" for n in range(1000)])
    await until(lambda: not connections_of(server))


async def test_s8_nothing_more_is_read_from_a_client_that_does_not_take_the_answers_to_its_pings(
    jobs, serving, narrow_server, monkeypatch
):
    """They were kept in memory as fast as a stranger sent them."""
    monkeypatch.setattr("tenure.web.reader_deadline.SEND_WITHIN", 30)
    monkeypatch.setattr("tenure.web.live.websocket.AUTH_WITHIN", 60)
    server, loop, pings = await serving.serve(), asyncio.get_running_loop(), 5000
    asked = (
        b"GET /_api/live HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with await narrow_connection(server) as client:
        await loop.sock_sendall(client, asked)
        answer = await loop.sock_recv(client, 4096)
        assert answer.endswith(b"\r\n\r\n")
        sending = asyncio.create_task(loop.sock_sendall(client, pings * (b"\x89\xfd\0\0\0\0" + 125 * b"x")))
        [protocol] = connections_of(server)
        await until(lambda: not protocol.transport.is_reading())
        assert protocol.transport.get_write_buffer_size() < 300_000
        left = pings * 127
        while left:
            received = await asyncio.wait_for(loop.sock_recv(client, left), 10)
            assert received
            left -= len(received)
        await sending


@pytest.mark.parametrize(
    ("left", "late", "kept"),
    [
        ([4, 3, 2], [0, 0], [True, True]),
        ([4, 4 - 0.9], [0], [False]),
        ([0.5, 0.25, 0.2], [0, 0], [True, False]),
        ([4, 4, 4], [2, 0], [True, False]),  # the event loop was blocked: nothing was sent meanwhile
    ],
)
def test_s8_a_client_that_reads_slowly_keeps_its_connection(monkeypatch, left, late, kept):
    calls, world = [], SimpleNamespace(now=0.0, left=left[0])
    monkeypatch.setattr("tenure.web.reader_deadline.unsent", lambda _: LEAST_TAKEN * world.left)

    class Slow(ReaderDeadline):
        loop = SimpleNamespace(time=lambda: world.now, call_at=lambda at, call, *given: calls.append((at, call, given)))
        transport = SimpleNamespace(abort=lambda: calls.append("abort"))

    Slow().pause_writing()
    for seconds, world.left, stays in zip(late, left[1:], kept, strict=True):
        at, call, given = calls.pop()
        world.now = at + seconds
        call(*given)
        assert (calls == ["abort"]) is not stays


async def test_s8_what_a_client_takes_from_the_buffer_of_the_system_counts():
    """It holds megabytes on loopback: a client that read 25 KB a second seemed to take nothing."""
    connected: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    class Sending(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            connected.set_result(transport)

    server = await asyncio.get_running_loop().create_server(Sending, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1], limit=1 << 16)
    transport = await connected
    transport.write(bytes(32 << 20))
    reader._transport.pause_reading()
    before, in_loop = unsent(transport), transport.get_write_buffer_size()
    assert before > in_loop > 0
    with writer.get_extra_info("socket").dup() as client:
        client.setblocking(False)
        taken = 0

        async def took_more() -> bool:
            nonlocal taken
            with suppress(BlockingIOError):
                taken += len(client.recv(1 << 14))
            return before - unsent(transport) >= LEAST_TAKEN

        await until(took_more)
    assert taken < 16 << 20
    writer.close()
    transport.abort()
    server.close()


async def test_s8_connections_that_are_used_stay(jobs, serving, monkeypatch):
    monkeypatch.setattr("tenure.web.http_protocol.HEAD_WITHIN", 0.2)
    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    job_id = await send(web)
    writer.write(f"GET /_api/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    await reader.readuntil(b'"pending"')
    await asyncio.sleep(0.5)  # longer than the time
    await live.send(type="ping")
    assert (await live.receive())["type"] == "pong"
    assert (await web.get("/session")).status_code == 200
    await web.post(f"/jobs/{job_id}/cancel")
    await asyncio.wait_for(reader.readuntil(b'"canceled"'), 10)
    writer.close()


HIDDEN = b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b"POST /_api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "smuggled",
    [
        BODY + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        BODY + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        BODY + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}",
        BODY + b"Content-Length: +2\r\n\r\n{}",
        BODY + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        BODY + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        BODY + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /_api/healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\x00\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
async def test_s8_smuggled_requests_are_refused(jobs, serving, smuggled):
    """One answer, and the end: what follows is not read as a request."""
    server = await serving.serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(smuggled + HIDDEN)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert re.findall(rb"^HTTP/1.1 (\d+)", answer, re.MULTILINE) == [b"400"], answer
    writer.close()
    assert (await (await server.client()).get("/healthz")).status_code == 200


async def test_s8_a_statement_that_takes_too_long_is_canceled(jobs, serving, sql, monkeypatch):
    monkeypatch.setattr("tenure.web.web_session.READ_WITHIN", 0.3)
    web = await serving.admin()
    assert (await web.get("/audit")).status_code == 200
    sql("begin; lock table tenure.audit in access exclusive mode")
    answer = await web.get("/audit")
    sql("rollback")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:tenure:problem:too-slow")

    async def is_served() -> bool:  # on a busy machine, an answer may take longer than this short limit allows
        return (await web.get("/audit")).status_code == 200

    await until(is_served)


# S10: SQL


@pytest.mark.parametrize(
    "hostile",
    ["'; drop table tenure.jobs; --", '" or 1=1 --', "%_\\", "a) union select hash from tenure.tokens --", "x%27%3b", "\\'"],
)
async def test_s10_hostile_names_are_only_names(jobs, serving, sql, hostile):
    web = await serving.admin()
    for params in ({"kind": hostile}, {"queue": hostile}, {"key": hostile}, {"capability": hostile}):
        assert (await web.get("/jobs", params=params)).json()["jobs"] == []
    assert (await web.get("/stats/series", params={"queue": hostile})).json()["points"] == []
    from urllib.parse import quote

    assert (await web.post(f"/queues/{quote(hostile, safe='')}/pause")).status_code == 200
    from urllib.parse import unquote

    assert sql("select name from tenure.queues") == [(unquote(quote(hostile, safe="")),)]


def test_s10_only_the_store_has_sql():
    for path in SOURCE.rglob("*.py"):
        strings = [
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [
            text for text in strings if re.search(r"\b(select .* from|insert into|update \w+ set|delete from)\b", text)
        ], path


# S11: roles


async def test_s11_the_roles_may_append_to_the_audit_log_and_readers_cannot_sign(fresh_dsn, server_dsn):
    import psycopg

    with Database(fresh_dsn) as owner, Database(server_dsn, statement_timeout="0") as server:
        server.sql("select pg_advisory_lock(hashtext('the roles of tenure'))")
        owner.connection.execute(roles_sql("tenure").encode(), prepare=False)
        try:
            owner.sql("set role tenure_worker")
            owner.sql(
                "insert into tenure.audit (request_id, phase, actor, source, action)"
                " values (gen_random_uuid(), 'requested', 'x', 'api', 'y')"
            )
            for statement in ("update tenure.audit set actor = 'z'", "delete from tenure.audit"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    owner.sql(statement)
            assert owner.sql("select tenure.drop_audit(array(select id from tenure.audit))") == [(0,)]
            owner.sql("set role tenure_read")
            owner.sql("select * from tenure.audit")
            for statement in ("select * from tenure.signing_keys", "insert into tenure.tokens default values"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    owner.sql(statement)
            owner.sql("set role tenure_enqueue")
            for table in ("tokens", "audit", "signing_keys", "kinds"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    owner.sql(f"select * from tenure.{table}")
        finally:
            owner.sql("reset role; drop owned by tenure_worker, tenure_enqueue, tenure_read")
            owner.sql("drop role tenure_worker, tenure_enqueue, tenure_read")


# S12: nothing is executed or unpickled


def test_s12_nothing_is_evaluated_or_imported_by_name():
    banned = {"pickle", "marshal", "shelve", "yaml", "subprocess", "importlib", "ctypes"}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert not {name.partition(".")[0] for name in names} & banned, path
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") not in ("eval", "exec", "compile", "__import__"), path


# S13: redaction


@pytest.mark.parametrize(
    "name",
    [
        "password", "db_password", "dbPassword", "PASSWORD", "token", "access-token", "Authorization", "apiKey", "X-Api-Key",
        "apikey", "clientSecret", "cookie", "accesstoken", "authtoken", "dbpassword", "userpassword", "refreshtoken", "secretkey",
        "passwords", "secrets", "api_keys", "tokens", "cookies", "pwd", "DB_PWD", "jwt", "bearer", "auth_header", "dsn",
        "SENTRY_DSN", "connection_string", "connectionString", "refresh_tokens", "AWS_SECRET_ACCESS_KEY", "set-cookie",
    ],
)  # fmt: skip
def test_s13_names_that_are_secret(name):
    assert Redaction().hide({name: "x"}) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "prompt_tokens", "token_count", "tokenLimit", "token_type", "tokenizer", "passenger", "key", "keyboard",
        "monkey", "format", "author", "secretary", "cookies_enabled", "password_length", "bypass", "keys", "compass",
    ],
)  # fmt: skip
def test_s13_names_that_are_not_secret(name):
    assert Redaction().hide({name: "x"}) == {name: "x"}


def test_s13_other_names_may_be_given():
    assert Redaction(["format"]).hide({"format": 1, "password": 2}) == {"format": REDACTED, "password": 2}


@pytest.mark.parametrize("name", ["пароль", "密码", "contraseña"])
def test_s13_names_in_any_script_may_be_given(name):
    """Names without Latin letters were ignored."""
    names = [name, name.upper(), f"db_{name}", f"{name}Db", f"db-{name}-1"]
    assert Redaction([name]).hide(dict.fromkeys([*names, "имя", "码"], "x")) == {
        **dict.fromkeys(names, REDACTED), "имя": "x", "码": "x"
    }  # fmt: skip


def test_s13_of_long_names_both_ends_count():
    long = "x" * 500
    shown = Redaction().hide({f"password_{long}": 1, f"{long}_password": 1, f"{long}_password_{long}": 1, long: 1})
    assert list(shown.values()) == [REDACTED, REDACTED, 1, 1]


def test_s13_names_of_any_length_cost_little(monkeypatch):
    """A name of 960 KB was matched for a second at each look at its job."""
    looked_at: list[str] = []
    monkeypatch.setattr(secret_names, "_words", lambda name, words=secret_names._words: looked_at.append(name) or words(name))
    redaction = Redaction(["password"])
    looked_at.clear()
    long = "pass" * 240_000
    for _ in range(3):
        assert redaction.hide({f"{long}_password": "x", long: "y", "city": "Bonn"}) == {
            f"{long}_password": REDACTED, long: "y", "city": "Bonn",
        }  # fmt: skip
    assert [len(name) for name in looked_at] == [401]


class CountedText(str):
    """Counts how often it becomes a part of another text."""

    __slots__ = ()
    used = 0

    def __format__(self, spec: str) -> str:
        type(self).used += 1
        return super().__format__(spec)


def test_s13_a_path_is_made_for_a_refused_value_only():
    where = CountedText("args")
    refuse_redacted({"rows": [[n, {"a": "x"}] for n in range(1000)]}, where)
    assert CountedText.used == 0
    for value, path in (REDACTED, "args"), ({"rows": [1, {"a": [REDACTED]}]}, "args.rows.1.a.0"):
        with pytest.raises(Problem) as refused:
            refuse_redacted(value, "args")
        assert [one["path"] for one in refused.value.errors] == [path]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["Authorization", "Bearer x"], ["Authorization", REDACTED]),
        ([["Accept", "text/html"], ["Cookie", "a=b"]], [["Accept", "text/html"], ["Cookie", REDACTED]]),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": REDACTED}),
        ({"key": "api_key", "value": {"a": "x"}}, {"key": "api_key", "value": REDACTED}),
        ({"name": "city", "value": "Bonn"}, {"name": "city", "value": "Bonn"}),
        ({"name": "token", "age": 3}, {"name": "token", "age": 3}),
        (["token", "a", "b"], ["token", "a", "b"]),
        ({"Name": "DB_PASSWORD", "Value": "x"}, {"Name": "DB_PASSWORD", "Value": REDACTED}),
        ({"KEY": "api_key", "Values": ["x"]}, {"KEY": "api_key", "Values": REDACTED}),
        (["pin_token", 987654], ["pin_token", REDACTED]),
        (["pin_token", 9.5], ["pin_token", REDACTED]),
        (["token", True], ["token", True]),
        (["max_tokens", 987654], ["max_tokens", 987654]),
    ],
)
def test_s13_pairs_of_a_name_and_its_value(given, shown):
    assert Redaction().hide({"given": given}) == {"given": shown}


@pytest.mark.parametrize(
    "given", [{"Name": "DB_PASSWORD", "Value": "sekret99"}, ["pin_token", "sekret99"], {"token": "sekret99"}]
)
def test_s13_secrets_of_pairs_are_found_again_in_texts(given):
    job = SimpleNamespace(kind="login", input={"a": given}, auth=None, meta=None, system=None)
    assert Redaction().secrets_of(job).hide("login(sekret99)") == f"login({REDACTED})"


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        ("swordfish", "login(swordfish) failed", "login([redacted]) failed"),
        ("Bearer swordfish", "401 for swordfish", "401 for [redacted]"),
        ('sword"fi\\sh', "ValueError: {'password': 'sword\"fi\\\\sh'}", "ValueError: {'password': '[redacted]'}"),
        (["swordfish", "swordfish-2"], "swordfish-2, swordfish", "[redacted], [redacted]"),
        (1234567, "code 1234567", "code [redacted]"),
        ("short", "too short", "too short"),
    ],
)
def test_s13_secrets_are_found_again_in_texts(secret, text, shown):
    job = SimpleNamespace(kind="login", input={"a": [{"password": secret}]}, auth=None, meta=None, system=None)
    assert Redaction().secrets_of(job).hide({"text": [text]}) == {"text": [shown]}


async def test_s13_secrets_are_hidden_everywhere(app, serving, sql):
    @app.job(max_attempts=1)
    async def login(ctx: Context, user: str, password: str, nested: dict) -> dict:
        ctx.log.info("signing in", token=PAYLOAD)
        return {"session_token": PAYLOAD, "ok": True}

    server, token = await serving.serve(), await serving.token()
    web = await server.client(token)
    live = await server.live(token)
    secrets = {"user": "ann", "password": PAYLOAD, "nested": {"list": [{"api_key": PAYLOAD}]}}
    sent = await web.post("/jobs/login/dispatch", json={"args": secrets, "meta": {"authorization": PAYLOAD}})
    job_id = sent.json()["id"]
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    async with app.running():
        await live.until(lambda message: message["job"]["over"])
    shown = [sent.text, json.dumps(live.seen)]
    paths = ["/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/report", f"/jobs/{job_id}/explain", "/audit"]
    shown += [(await web.get(path)).text for path in paths]
    pages = [web.get(f"/jobs/{job_id}/report", headers={"accept": kind}) for kind in ("text/html", "text/plain")]
    shown += [answer.text for answer in await asyncio.gather(*pages)]
    assert all(PAYLOAD not in text for text in shown)
    assert REDACTED in shown[3]
    # What is stored is the input itself, and a hidden value cannot be sent back.
    assert sql("select input ->> 'password' from tenure.all_jobs") == [(PAYLOAD,)]
    hidden = await web.post("/jobs/login/dispatch", json={"args": (await web.get(f"/jobs/{job_id}")).json()["input"]})
    assert (hidden.status_code, hidden.json()["type"]) == (422, "urn:tenure:problem:redacted")


SWORDFISH = "swordfish-41d7"
"""Not one of those that are planted: handlers of these tests write it into the log."""


async def test_s13_secrets_in_errors_logs_and_progress_are_hidden_too(app, serving):
    @app.job(retry=Retry(max_attempts=2, initial=0.01))
    async def login(ctx: Context, password: str) -> None:
        ctx.log.info("signing in with %s" % password, header=f"Basic {password}")  # noqa: G002, UP031
        ctx.progress(5, f"trying {password}")
        raise ValueError(f"{password} is not accepted")

    @app.workflow
    async def onboard(ctx: WorkflowContext, api_key: str) -> None:
        async def call() -> None:
            raise ValueError(f"{api_key} is not accepted")

        await ctx.step("call", call, retry=Retry(max_attempts=1))

    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    job_id = await send(web, "login", {"password": SWORDFISH})
    flow_id = await send(web, "onboard", {"api_key": SWORDFISH})
    await live.send(type="subscribe", topics=[f"job:{job_id}", f"workflow:{flow_id}", f"chain:{job_id}"])
    async with app.running():
        await until(lambda: over(web, job_id))
        await until(lambda: over(web, flow_id))
    await live.until(lambda message: message["type"] == "job" and message["job"]["over"])
    tracker = await server.client((await web.post(f"/jobs/{job_id}/tracker", json={})).json()["token"])
    paths = ["/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/report", f"/jobs/{job_id}/explain", f"/chains/{job_id}", "/failures"]
    paths += ["/findings", f"/workflows/{flow_id}", "/workflows", f"/jobs/{flow_id}/report"]
    shown = {path: (await web.get(path)).text for path in paths}
    groups = json.loads(shown["/failures"])["groups"]
    shown |= {group["id"]: (await web.get(f"/failures/{group['id']}")).text for group in groups}
    shown |= {"tracker": (await tracker.get(f"/jobs/{job_id}")).text, "live": json.dumps(live.seen)}
    for accept in ("text/html", "text/plain"):
        shown[accept] = (await web.get(f"/jobs/{job_id}/report", headers={"accept": accept})).text
    assert [where for where, text in shown.items() if SWORDFISH in text or "swordfish" in text] == []
    assert json.loads(shown[f"/jobs/{job_id}"])["error_message"] == "[redacted] is not accepted"
    assert f"trying {REDACTED}" in shown["live"]


@pytest.mark.parametrize("secret", [SWORDFISH, "pin4"])
async def test_s13_secrets_are_hidden_in_what_is_made_of_them(app, serving, sql, secret):
    """A key, a limit group and the event that a workflow waits for are made of values of the input."""

    @app.job(key="api_key", concurrency=Limit(1, per="access_token"))
    async def pull(api_key: str, access_token: str) -> None: ...

    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    async with app.running():
        await until(lambda: sql("select 1 from tenure.limits"))  # groups are made when a worker has declared the limit
    sent = await web.post("/jobs/pull/dispatch", json={"args": {"api_key": secret, "access_token": secret}})
    again = await web.post("/jobs/pull/dispatch", json={"args": {"api_key": secret, "access_token": secret}})
    job_id = sent.json()["id"]
    await live.send(type="subscribe", topics=[f"job:{job_id}", f"chain:{job_id}"])
    seen = [await live.receive(), await live.receive()]
    paths = ["/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/report", f"/jobs/{job_id}/explain", f"/chains/{job_id}", "/audit"]
    shown = {path: (await web.get(path)).text for path in paths}
    for accept in ("text/html", "text/plain"):
        shown[accept] = (await web.get(f"/jobs/{job_id}/report", headers={"accept": accept})).text
    shown |= {"sent": sent.text, "again": again.text, "live": json.dumps(seen)}
    assert [where for where, text in shown.items() if secret in text] == []
    job = json.loads(shown[f"/jobs/{job_id}"])
    assert (job["key"], job["idempotency_key"]) == (REDACTED, REDACTED)
    assert job["limit_group"].endswith(f"access_token={REDACTED}")


@pytest.mark.parametrize("secret", [SWORDFISH, "pin4"])
async def test_s13_a_secret_that_is_given_as_key_is_hidden_and_cannot_be_searched_for(app, serving, secret):
    @app.job
    async def pull(password: str | None = None) -> None: ...

    web = await serving.admin()
    for args in ({"password": secret}, {}):  # the second one finds the job of the first by its key
        sent = await web.post("/jobs/pull/dispatch", json={"args": args, "key": secret, "queue": "other"})
        [entry] = (await web.get("/audit", params={"limit": 1})).json()["entries"]
        assert entry["request"] == {"kind": "pull", "key": REDACTED, "queue": "other"}
        assert sent.json()["job"]["key"] == REDACTED
    plain = await send(web, "pull", {}, key="order-7")
    assert [job["id"] for job in (await web.get("/jobs", params={"key": "order-7"})).json()["jobs"]] == [plain]
    for key in (secret, "no such key"):
        assert (await web.get("/jobs", params={"key": key, "limit": 1})).json() == {"jobs": [], "next": None}


@pytest.mark.parametrize("secret", [SWORDFISH, "pin4"])
async def test_s13_a_bulk_action_hides_the_key_that_it_looks_for(app, serving, sql, secret):
    @app.job
    async def pull(password: str | None = None) -> None: ...

    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    doomed = await send(web, "pull", {"password": secret}, key=secret, delay="1h")
    body = {"action": "cancel", "filter": {"kind": "pull", "key": secret}, "dry_run": False}
    sent = await web.post("/jobs/bulk", json=body)
    assert (sent.json()["matched"], sent.json()["job"]) == (0, None)
    job_id = str((await app.enqueue("tenure.bulk", {"action": "cancel", "filter": body["filter"]})).id)
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    seen = await live.receive()
    paths = ["/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/report", f"/chains/{job_id}", "/audit"]
    shown = {path: (await web.get(path)).text for path in paths} | {"sent": sent.text, "live": json.dumps(seen)}
    refused = await web.post("/jobs/bulk", json={**body, "filter": {"input": {"password": secret}}})
    shown |= {"refused": refused.text, "audit": (await web.get("/audit")).text}
    assert refused.status_code == 422
    assert [where for where, text in shown.items() if secret in text] == []
    assert json.loads(shown[f"/jobs/{job_id}"])["input"]["filter"] == {"kind": "pull", "key": REDACTED}
    async with app.running():
        await until(lambda: sql("select state from tenure.all_jobs where id = %s", doomed), is_=[("canceled",)])


async def test_s13_secrets_are_hidden_in_what_a_workflow_waits_for(app, serving):
    @app.workflow
    async def confirm(ctx: WorkflowContext, password: str) -> None:
        await ctx.wait_for("confirmed", key=password)

    web = await serving.admin()
    flow_id = await send(web, "confirm", {"password": SWORDFISH})

    async def waits():
        [flow] = (await web.get("/workflows")).json()["workflows"]
        return flow["waits"]

    async with app.running():
        await until(waits)
    [wait] = await waits()
    assert wait["output"]["key"] == REDACTED
    for path in ("/workflows", f"/workflows/{flow_id}", f"/jobs/{flow_id}/report"):
        assert SWORDFISH not in (await web.get(path)).text


async def test_s13_names_are_added_by_a_setting(dsn, serving):
    app = Tenure(dsn, web_secret_names="iban, tax_number")

    @app.job
    async def pay(iban: str, password: str, taxNumber: str) -> None: ...

    web = await serving.admin(app=app)
    job = (await web.get(f"/jobs/{await send(web, 'pay', {'iban': 'x', 'password': 'y', 'taxNumber': 'z'})}")).json()
    assert set(job["input"].values()) == {REDACTED}
    await app.close()


async def test_s13_a_message_with_a_secret_is_sent_once(app, serving):
    """What is hidden differs from what is stored, and looked like a change at every look."""

    @app.job
    async def wait(ctx: Context, password: str) -> None:
        ctx.progress(5, password)
        await asyncio.Event().wait()

    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    job_id = await send(web, "wait", {"password": SWORDFISH})
    async with app.running():
        await live.send(type="subscribe", topics=[f"job:{job_id}", "overview"])
        await live.until(lambda message: message["type"] == "job" and message["job"]["progress_message"] == REDACTED)
        for _ in range(2):  # each second, after all followed jobs were looked at
            assert (await live.receive())["type"] == "overview"
        await web.post(f"/jobs/{job_id}/cancel")


async def test_s13_the_version_of_a_job_is_not_a_hash_of_hidden_values(app, serving):
    """A client that had a version could compare it with the hashes of guesses, as fast as its own machine computes them."""

    @app.job
    async def login(ctx: Context, password: str) -> None:
        ctx.progress(5, f"trying {password}")

    server, token = await serving.serve(), await serving.token()
    web, live = await server.client(token), await server.live(token)
    job_id = await send(web, "login", {"password": SWORDFISH})
    async with app.running():
        await until(lambda: over(web, job_id))
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    message = await live.receive()
    assert message["job"]["progress_message"] == f"trying {REDACTED}"
    guess = repr(version_of(await app.client().find(job_id)))
    assert SWORDFISH in guess
    assert message["version"] != hashlib.sha256(guess.encode()).hexdigest()[:16]
    again = await web.get(f"/jobs/{job_id}/events", headers={"last-event-id": message["version"]})
    assert again.status_code == 204


# S14: the audit log


async def test_s14_every_change_is_recorded_before_and_after(jobs, serving):
    web = await serving.admin()
    job_id = await send(web)
    await web.post(f"/jobs/{job_id}/cancel", json={"reason": "enough"})
    await web.post("/queues/exports/pause", json={"reason": "repairs"})
    await web.post("/jobs/00000000-0000-7000-8000-000000000000/cancel")
    entries = (await web.get("/audit")).json()["entries"][::-1]
    told = [(entry["action"], entry["phase"], entry["status"]) for entry in entries]
    assert told == [
        ("dispatch_job", "finished", 202),
        ("cancel_job", "requested", None),
        ("cancel_job", "finished", 200),
        ("pause_queue", "requested", None),
        ("pause_queue", "finished", 200),
        ("cancel_job", "requested", None),
        ("cancel_job", "finished", 404),
    ]
    assert {(entry["actor"], entry["ip"], entry["source"]) for entry in entries} == {("tests", "127.0.0.1", "api")}
    assert (entries[0]["subject"], entries[0]["request"]) == (job_id, {"kind": "export_users"})
    assert (entries[1]["subject"], entries[1]["request"]) == (job_id, {"reason": "enough"})
    assert (entries[2]["before"], entries[2]["after"]) == ({"state": "pending"}, {"canceled": True})
    assert (entries[4]["before"], entries[4]["after"]) == ({"paused": False}, {"paused": True})
    assert entries[1]["request_id"] == entries[2]["request_id"]
    page = (await web.get("/audit", params={"limit": 3})).json()
    rest = (await web.get("/audit", params={"limit": 200, "before": page["next"]})).json()
    assert (page["entries"] + rest["entries"])[::-1] == entries


async def test_s14_an_entry_records_what_the_call_was_made_with(jobs, serving, sql):
    server = await serving.serve()
    web = await serving.admin()
    job_id = await send(web)
    tracking = await server.client(await tracker_token(serving.app, job_id, cancel=True))
    await web.post("/queues/exports/pause", headers={"Tenure-Source": "dashboard"})
    await web.post("/queues/exports/resume", headers={"Tenure-Source": "root@production"})
    await tracking.post(f"/jobs/{job_id}/cancel", headers={"Tenure-Source": "dashboard"})
    entries = (await web.get("/audit")).json()["entries"]
    assert {entry["action"]: entry["source"] for entry in entries} == {
        "dispatch_job": "api",
        "pause_queue": "dashboard",
        "resume_queue": "api",
        "cancel_job": "tracker",
    }


async def test_s14_what_cannot_be_recorded_is_not_done(jobs, serving, sql):
    web = await serving.admin()
    sql("alter table tenure.audit rename to audit_away")
    try:
        answer = await web.post("/queues/x/pause")
    finally:
        sql("alter table tenure.audit_away rename to audit")
    assert (answer.status_code, sql("select count(*) from tenure.queues")) == (503, [(0,)])


def test_s14_every_route_that_changes_something_is_audited():
    from tenure.web.route_table import ROUTES

    assert {route.path for route in ROUTES if route.changes and not route.audited} == {"/session"}


# S15: read-only


async def test_s15_a_read_only_server_shows_and_refuses_changes(jobs, serving):
    server = await serving.serve(read_only=True)
    web = await server.client(await serving.token())
    assert (await web.get("/session")).json()["read_only"] is True
    assert (await web.get("/jobs")).status_code == 200
    from tenure.web.route_table import ROUTES
    from tests.web.test_tokens import path_of

    for route in ROUTES:
        if route.audited:
            answer = await web.request(route.method, path_of(route), json={} if route.body else None)
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:tenure:problem:read-only"), route.path


async def test_s15_an_account_that_may_only_read_is_detected(fresh_dsn, server_dsn, serving):
    from psycopg.conninfo import make_conninfo

    with Database(fresh_dsn) as owner, Database(server_dsn, statement_timeout="0") as server_database:
        server_database.sql("select pg_advisory_lock(hashtext('the roles of tenure'))")
        owner.connection.execute(roles_sql("tenure").encode(), prepare=False)
        owner.sql("create role only_reads login; grant tenure_read to only_reads")
        app = Tenure(make_conninfo(fresh_dsn, user="only_reads"))
        try:

            async def authorize(request):
                return Principal(name="ann", scope=tenure.web.Scope.ADMIN)

            [job_id] = owner.enqueue({})
            server = await serving.serve(app=app, authorize=authorize)
            web = await server.client()
            assert (await web.get("/session")).json()["read_only"] is True
            assert (await web.get(f"/jobs/{job_id}")).json()["state"] == "pending"
            assert (await web.post(f"/jobs/{job_id}/cancel")).json()["type"] == "urn:tenure:problem:read-only"
            live = await server.live(origin=server.url)
            await live.send(type="subscribe", topics=[f"job:{job_id}"])
            assert (await live.until(lambda message: message["type"] == "job"))["job"]["state"] == "pending"
            await server.stop()
            await app.close()
        finally:
            owner.sql("drop owned by tenure_worker, tenure_enqueue, tenure_read, only_reads")
            owner.sql("drop role only_reads; drop role tenure_worker, tenure_enqueue, tenure_read")


# S16: nothing is loaded from elsewhere


def locked() -> dict[str, tuple[str, int]]:
    """By name: the version that the image installs, and how many files are allowed."""
    text = (ROOT / "deploy" / "requirements.txt").read_text()
    blocks = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: (version, len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", rest))) for name, version, rest in blocks}


def test_s16_everything_that_the_image_installs_is_pinned_with_hashes():
    text = (ROOT / "deploy" / "requirements.txt").read_text()
    given = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(given) == len(locked()) > 20
    assert all(files for _, files in locked().values())
    assert "--require-hashes -r" in (ROOT / "deploy" / "Dockerfile").read_text()


def test_s16_the_pins_are_what_we_ask_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for text in [*project["dependencies"], *extras["web"], *extras["speed"]]:
        wanted = Requirement(text)
        version, _ = locked()[wanted.name]
        assert wanted.specifier.contains(version), text


def test_s16_nothing_is_loaded_from_other_sites():
    for path in [*SOURCE.rglob("*"), *(ROOT / "clients" / "js").glob("*.js")]:
        if path.is_file() and path.suffix in (".py", ".js", ".html", ".css"):
            found = re.findall(r"https?://(?![\w.]+\.example|\{)[\w.]+", path.read_text())
            assert found == [], path


# Failures tell nothing


async def test_a_bug_is_an_opaque_500_and_in_the_log(jobs, serving, monkeypatch, caplog):
    async def broken(*_):
        raise RuntimeError("the password is swordfish")

    web = await serving.admin()
    monkeypatch.setattr("tenure.web.fleet_stats.FleetStats.fleet_minutes", broken)
    answer = await web.get("/stats/fleet")
    assert (answer.status_code, answer.json()["type"], "swordfish" in answer.text) == (
        500,
        "urn:tenure:problem:internal-error",
        False,
    )
    assert "swordfish" in caplog.text


async def test_what_postgres_refuses_is_answered_with_its_code_and_a_way_out(jobs, serving, sql):
    web = await serving.admin()
    sql("alter table tenure.queues add constraint not_mail check (name <> 'mail')")
    try:
        refused = await web.post("/queues/mail/pause", json={})
    finally:
        sql("alter table tenure.queues drop constraint not_mail")
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:tenure:problem:refused")
    assert "23514" in refused.json()["detail"]
    assert "not_mail" not in refused.text


async def test_an_outage_is_a_503_that_names_no_host(serving, monkeypatch):
    app = Tenure("postgresql://account:hidden@127.0.0.1:1/nowhere", client_timeout_seconds=0.2)
    server = await serving.serve(app=app)
    web = await server.client("tnr_x")
    answer = await web.get("/jobs")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert not re.search(r"account|hidden|127\.0|nowhere", answer.text)
    assert (await web.get("/healthz")).status_code == 200
    assert (await web.get("/readyz")).status_code == 503
    await app.close()
