"""Live updates: snapshots, changes, resuming, access, slow readers, outages."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from itertools import pairwise
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tenure import Context
from tenure.web import Principal, Scope, revoke_token, tracker_token
from tenure.web.live import websocket
from tenure.web.live.followed import FollowedJob
from tenure.web.live.outbox import Outbox
from tenure.web.live.topics import LiveTopic, Subject
from tenure.web.security import pending_sockets, tokens
from tenure.web.security.authentication import Authenticator
from tenure.web.security.rate_limits import too_many
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.serving import asking_from
from tests.web.test_jobs import send

KILL = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and application_name like %s"


@pytest.fixture
def steps(app):
    """A job that reports the progress that a test puts into this queue; more than 100 ends it."""
    told: asyncio.Queue[int] = asyncio.Queue()

    @app.job(queue="steps")
    async def walk(ctx: Context) -> str:
        while (percent := await told.get()) <= 100:
            ctx.progress(percent, f"at {percent}")
        return "there"

    return told


async def test_a_viewer_sees_a_job_from_its_begin_to_its_end(steps, serving):
    server, token = await serving.serve(), await serving.token("read")
    admin = await server.client(await serving.token())
    job_id = await send(admin, "walk", {})
    live = await server.live(token)
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    first = await live.receive()
    assert (first["type"], first["topic"], first["job"]["state"]) == ("job", f"job:{job_id}", "pending")
    async with serving.app.running():
        await live.until(lambda message: message["job"]["state"] == "running")
        for percent in (10, 60):
            steps.put_nowait(percent)
            await live.until(lambda message, percent=percent: message["job"]["progress_percent"] == percent)
        steps.put_nowait(101)
        last = await live.until(lambda message: message["job"]["over"])
    assert (last["job"]["status"], last["job"]["output"], last["job"]["progress_message"]) == ("completed", "there", "at 60")


async def test_a_viewer_that_reconnects_misses_nothing_and_gets_nothing_twice(steps, serving):
    servers = [await serving.serve(), await serving.serve()]
    token = await serving.token()
    job_id = await send(await servers[0].client(token), "walk", {})
    topic = f"job:{job_id}"
    first = await servers[0].live(token)
    await first.send(type="subscribe", topics=[topic])
    version = (await first.receive())["version"]
    await first.connection.close()
    # At another server, with the version that it has seen: nothing is sent before something changes.
    second = await servers[1].live(token)
    await second.send(type="subscribe", topics=[topic], versions={topic: version})
    await second.send(type="subscribe", topics=["queue:steps"])
    assert (await second.receive())["type"] == "queue"
    async with serving.app.running():
        assert (await second.until(lambda message: message["type"] == "job"))["job"]["state"] == "running"
        await second.connection.close()
        steps.put_nowait(101)
        await until(lambda: is_completed(servers[0], token, job_id))
    third = await servers[0].live(token)
    await third.send(type="subscribe", topics=[topic], versions={topic: version})
    assert (await third.receive())["job"]["state"] == "completed"


async def is_completed(server, token, job_id):
    return (await (await server.client(token)).get(f"/jobs/{job_id}")).json()["state"] == "completed"


async def test_only_versions_of_jobs_are_kept_and_only_short_ones(jobs, serving):
    """Of a queue, a "version" of 60 KB stayed as long as it was followed."""
    web = WebApp(serving.app, WebOptions())
    server, hub, token = await serving.serve(web), web.services().live, await serving.token("read")
    live, topics = await server.live(token), ["queue:a", "overview", f"job:{uuid4()}"]
    await live.send(type="subscribe", topics=topics, versions=dict.fromkeys(topics, "x" * 64))
    await live.until(lambda message: message["type"] == "gone")
    assert [viewer.seen for viewer in hub._viewers] == [{}]
    others = ["queue:b", f"job:{uuid4()}"]
    await live.send(type="subscribe", topics=others, versions=dict.fromkeys(others, "x" * 65))
    refused = [await live.until(lambda message: message["type"] == "error") for _ in others]
    assert [message["topic"] for message in refused] == others
    assert {message["problem"]["detail"] for message in refused} == {
        "versions has more than 64 characters: give the version that was sent, or leave it out"
    }
    assert [{str(topic) for topic in viewer.topics} for viewer in hub._viewers] == [set(topics)]


async def test_a_long_last_event_id_is_refused(jobs, serving):
    web = await serving.admin()
    refused = await web.get(f"/jobs/{await send(web)}/events", headers={"last-event-id": "x" * 65})
    assert (refused.status_code, [one["path"] for one in refused.json()["errors"]]) == (422, ["header.Last-Event-ID"])


async def test_the_overview_and_queues_follow_what_happens(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    live = await server.live(token)
    await live.send(type="subscribe", topics=["overview", "queue:exports"])
    await live.until(lambda message: message["type"] == "overview")
    await send(await server.client(token))
    changed = await live.until(lambda message: message["type"] == "queue" and message["queue"])
    assert changed["queue"]["pending"] == 1
    await live.send(type="unsubscribe", topics=["overview", "queue:exports"])
    await live.send(type="ping")
    await live.until(lambda message: message["type"] == "pong")


async def test_a_job_that_is_deleted_or_never_was_is_gone(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    admin, live = await server.client(token), await server.live(token)
    job_id, unknown = await send(admin), str(uuid4())
    await live.send(type="subscribe", topics=[f"job:{unknown}", f"job:{job_id}"])
    seen = [await live.receive(), await live.receive()]
    assert {message["type"]: message["topic"] for message in seen} == {"gone": f"job:{unknown}", "job": f"job:{job_id}"}
    await admin.delete(f"/jobs/{job_id}")
    assert (await live.receive())["type"] == "gone"


async def test_wrong_messages_are_answered_and_the_connection_stays(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    live = await server.live(token)
    for message in (
        {"type": "dance"},
        {"type": "subscribe"},
        {"type": "subscribe", "topics": ["nonsense"]},
        {"type": "subscribe", "topics": ["job:x"]},
    ):
        await live.send(**message)
        assert (await live.receive())["type"] == "error"
    await live.send(type="ping")
    assert (await live.receive())["type"] == "pong"


async def test_a_topic_that_is_refused_is_named_and_does_not_prevent_the_others(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    job_id = await send(await server.client(token))
    live = await server.live(token)
    await live.send(type="subscribe", topics=["bad:topic", 7, f"job:{job_id}"])
    seen = {message["topic"]: message["type"] for message in [await live.receive() for _ in range(3)]}
    assert seen == {"bad:topic": "error", "7": "error", f"job:{job_id}": "job"}
    await live.send(type="unsubscribe", topics=["bad:topic", f"job:{job_id}"])
    assert (await live.receive())["topic"] == "bad:topic"
    await live.send(type="subscribe", topics=[f"job:{job_id}"])  # sent again: it was not followed any more
    assert (await live.receive())["type"] == "job"


@pytest.mark.parametrize("frame", ["[]", "nonsense", "[" * 60_000, b"\xff\xfe", "1"])
async def test_malformed_frames_end_their_connection_and_no_other(jobs, serving, frame):
    server, token = await serving.serve(), await serving.token()
    bystander, live = await server.live(token), await server.live(token)
    await live.connection.send(frame)
    await closed(live, 1007)  # invalid data: 1011 would be a failure of the server
    await bystander.send(type="ping")
    assert (await bystander.receive())["type"] == "pong"


async def test_a_frame_that_is_too_large_ends_its_connection_and_no_other(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    bystander, live = await server.live(token), await server.live(token)
    frame = json.dumps({"type": "ping", "x": ""})
    await live.connection.send(frame.replace('""', f'"{"x" * (websocket.LARGEST_MESSAGE - len(frame))}"'))
    assert (await live.receive())["type"] == "pong", "the largest that is allowed"
    await live.connection.send("x" * (websocket.LARGEST_MESSAGE + 1))
    await closed(live, 1009)
    await bystander.send(type="ping")
    assert (await bystander.receive())["type"] == "pong"


# Access (S5)


async def test_nothing_is_sent_before_the_token(jobs, serving, monkeypatch):
    monkeypatch.setattr(websocket, "AUTH_WITHIN", 0.3)
    server, token = await serving.serve(), await serving.token()
    silent = await server.live()
    assert (await silent.receive())["problem"]["status"] == 401
    await closed(silent, 4401)
    wrong = await server.live()
    await wrong.send(type="auth", token="tnr_wrong")
    assert (await wrong.receive())["type"] == "error"
    await closed(wrong, 4401)
    early = await server.live()
    await early.send(type="subscribe", topics=["overview"])
    assert (await early.receive())["problem"]["status"] == 401
    # A token in the address counts for nothing.
    tempting = await server.live(path=f"/_api/live?token={token}&access_token={token}")
    assert (await tempting.receive())["problem"]["status"] == 401


async def closed(live, code):
    with pytest.raises(ConnectionClosed) as ended:
        while True:
            await live.receive()
    assert ended.value.rcvd.code == code


async def test_a_page_of_another_site_is_refused_before_the_connection_is_accepted(jobs, serving):
    server = await serving.serve()
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.port}.evil.example"):
        with pytest.raises(InvalidStatus) as refused:
            await server.live(origin=origin)
        assert refused.value.response.status_code == 403
    await (await server.live(origin=server.url)).connection.close()
    listed = await serving.serve(allowed_origins=["https://shop.example"])
    await (await listed.live(origin="https://shop.example")).connection.close()


async def test_a_header_with_a_token_is_accepted_too(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    live = await server.live(additional_headers={"authorization": f"Bearer {token}"})
    assert (await live.receive())["type"] == "ready"


async def test_a_token_that_was_not_needed_is_accepted(jobs, serving):
    """A client cannot know that a header, a cookie or its address has identified it already."""
    server, token = await serving.serve(), await serving.token()
    live = await server.live(additional_headers={"authorization": f"Bearer {token}"})
    await live.send(type="auth", token=token)
    await live.send(type="ping")
    assert [(await live.receive())["type"] for _ in range(2)] == ["ready", "pong"]


async def test_a_connection_ends_when_its_token_is_revoked(jobs, serving, monkeypatch):
    monkeypatch.setattr(websocket, "RECHECK", 0.1)
    monkeypatch.setattr(tokens, "RECHECK", 0.05)
    server, token = await serving.serve(), await serving.token(name="ann")
    live = await server.live(token)
    await revoke_token(serving.app, "ann")
    await closed(live, 4401)


async def test_a_connection_whose_token_cannot_be_confirmed_ends(jobs, serving, monkeypatch):
    """An address that has guessed too often counted as valid, so that a revoked token worked on while others guessed."""
    monkeypatch.setattr(websocket, "RECHECK", 0.1)
    server, token = await serving.serve(), await serving.token()
    live = await server.live(token)

    async def refuse(*_: object) -> None:
        raise too_many("too many wrong tokens from this address", 12)

    monkeypatch.setattr(Authenticator, "of_token", refuse)
    await closed(live, 4401)


async def test_a_stream_of_events_ends_when_its_token_is_revoked(jobs, serving, monkeypatch):
    """Nothing happens to the job, and the token was checked only after a message or a comment."""
    monkeypatch.setattr("tenure.web.api.events.RECHECK", 0.1)
    monkeypatch.setattr(tokens, "RECHECK", 0.05)
    server = await serving.serve()
    web = await server.client(await serving.token(name="ann"))
    job_id = await send(web)
    async with asyncio.timeout(10), web.stream("GET", f"/jobs/{job_id}/events") as answer:
        async for line in answer.aiter_lines():
            if '"pending"' in line:
                await revoke_token(serving.app, "ann")
    assert answer.is_closed


async def test_connections_that_wait_for_their_token_are_bounded(jobs, serving, monkeypatch):
    """All that the server has could be held by a stranger, and every request was answered with 503."""
    monkeypatch.setattr(pending_sockets, "MOST_OF_ADDRESS", 2)
    monkeypatch.setattr(pending_sockets, "MOST", 3)
    web_app, token = WebApp(serving.app, WebOptions()), await serving.token()
    server, other, third = [
        await serving.serve(asking_from(address, web_app)) for address in ("203.0.113.7", "203.0.113.8", "127.0.0.1")
    ]
    waiting = [await server.live() for _ in range(2)]
    with pytest.raises(InvalidStatus):
        await server.live()
    waiting.append(await other.live())
    for refused in (other, third):
        with pytest.raises(InvalidStatus):
            await refused.live()
    header = {"authorization": f"Bearer {token}"}
    assert (await (await other.live(additional_headers=header)).receive())["type"] == "ready"
    await waiting[0].send(type="auth", token=token)  # those that have sent it make room
    assert (await waiting[0].receive())["type"] == "ready"
    await other.live()


async def test_a_token_has_a_bounded_number_of_connections(jobs, serving, monkeypatch):
    monkeypatch.setattr("tenure.web.live.hub.MOST_CONNECTIONS", 2)
    server, token = await serving.serve(), await serving.token()
    first, _ = [await server.live(token) for _ in range(2)]
    third = await server.live()
    await third.send(type="auth", token=token)
    await closed(third, 4429)
    await first.connection.close()

    async def room():
        live = await server.live()
        await live.send(type="auth", token=token)
        return (await live.receive())["type"] == "ready"

    await until(room)


async def test_limited_viewers_see_only_what_they_may(jobs, serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    export, burn = await send(admin), await send(admin, "burn", {"why": "x"})
    live = await server.live(await serving.token(kinds=["burn"]))
    await live.send(type="subscribe", topics=["overview", f"job:{export}", f"job:{burn}"])
    seen = {message["topic"]: message["type"] for message in [await live.receive() for _ in range(3)]}
    assert seen == {"overview": "error", f"job:{export}": "gone", f"job:{burn}": "job"}
    tracker = await server.live(await tracker_token(serving.app, burn))
    await tracker.send(type="subscribe", topics=[f"job:{export}"])
    assert (await tracker.receive())["problem"]["status"] == 403
    await tracker.send(type="subscribe", topics=[f"job:{burn}"])
    shown = await tracker.receive()
    assert (shown["job"]["state"], "input" in shown["job"]) == ("pending", False)


# Server-Sent Events


async def events(web, job_id, **headers):
    async with web.stream("GET", f"/jobs/{job_id}/events", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if not line and "data" in event:
                yield event
                event = {}
            elif line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value


async def test_a_job_as_server_sent_events_ends_with_the_job(steps, serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id = await send(admin, "walk", {})
    web = await server.client(await tracker_token(serving.app, job_id))
    states = []
    async with serving.app.running():
        async for event in events(web, job_id):
            job = json.loads(event["data"])["job"]
            states.append(job["state"])
            if job["state"] == "running" and job["progress_percent"] < 40:
                steps.put_nowait(40)
            elif job["progress_percent"] == 40 and job["state"] == "running":
                steps.put_nowait(101)
    assert (states[-1], "running" in states) == ("completed", True)
    # The same version again is not sent, and EventSource stops at 204.
    again = await web.get(f"/jobs/{job_id}/events", headers={"last-event-id": event["id"]})
    assert again.status_code == 204
    assert [json.loads(one["data"])["job"]["state"] async for one in events(web, job_id, **{"last-event-id": "old"})] == [
        "completed"
    ]


async def test_the_head_of_a_stream_of_events_leaves_its_connection_free(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    job_id = await send(await server.client(token))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    fields = f"host: 127.0.0.1:{server.port}\r\nauthorization: Bearer {token}\r\n\r\n"
    async with asyncio.timeout(20):
        writer.write(f"HEAD /_api/jobs/{job_id}/events HTTP/1.1\r\n{fields}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in head
        assert b"text/event-stream" in head
        writer.write(f"GET /_api/jobs/{job_id} HTTP/1.1\r\n{fields}".encode())
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


# Many viewers, slow ones, and outages


def test_a_slow_reader_gets_the_newest_state_of_each_topic_and_keeps_no_more():
    outbox = Outbox()
    for n in range(10_000):
        outbox.put("job:1", f"one {n}")
        outbox.put("job:2", f"two {n}")
    assert len(outbox._messages) == 2
    taken = [asyncio.run(take(outbox)) for _ in range(2)]
    assert taken == ["one 9999", "two 9999"]


async def test_a_slow_reader_gets_all_topics_in_turn_while_they_change_faster_than_it_reads():
    outbox, topics = Outbox(), {f"job:{n}" for n in range(10)}
    taken = set()
    for second in range(4):
        for topic in sorted(topics):
            outbox.put(topic, f"{topic} {second}")
        taken |= {(await take(outbox)).split()[0] for _ in range(3)}
    assert taken == topics
    while outbox._messages:
        await take(outbox)
    assert outbox._size == 0


async def take(outbox):
    return await outbox.take()


async def test_nothing_more_is_read_from_a_client_that_does_not_take_what_it_was_sent(jobs, serving, monkeypatch):
    """Refused topics are not followed, so their number has no other bound."""
    monkeypatch.setattr(websocket, "MOST_UNSENT", 50)
    monkeypatch.setattr(websocket, "MESSAGES_PER_SECOND", 10_000)
    taking, most = asyncio.Event(), []
    take, put = Outbox.take, Outbox.put

    async def slow(outbox):
        await taking.wait()
        return await take(outbox)

    def counted(outbox, topic, text):
        put(outbox, topic, text)
        most.append(len(outbox._messages))

    monkeypatch.setattr(Outbox, "take", slow)
    monkeypatch.setattr(Outbox, "put", counted)
    server = await serving.serve()
    live = await server.live(await serving.token("read", kinds=["burn"]))
    for n in range(20):
        await live.send(type="subscribe", topics=[f"queue:{n}-{m}" for m in range(10)])
    await until(lambda: most and most[-1] > 50)
    await live.connection.ping()
    assert max(most) <= 60
    taking.set()
    refused = {(await live.receive())["topic"] for _ in range(200)}
    assert len(refused) == 200, "nothing is lost when it continues"


UPDATES, LARGE = 600, 15_000
"""Together more than the kernel keeps for a connection."""


@pytest.mark.slow
async def test_a_client_that_never_reads_costs_one_message_and_delays_no_other(jobs, serving, sql, monkeypatch):
    monkeypatch.setattr("tenure.web.live.hub.GAP", 0.001)
    web_app, token = WebApp(serving.app, WebOptions()), await serving.token()
    server = await serving.serve(web_app)
    job_id = (await serving.app.enqueue("burn", {"why": "x" * LARGE})).id
    healthy = await server.live(token)
    await healthy.send(type="subscribe", topics=[f"job:{job_id}"])
    stuck = await never_reading(server, token, {"type": "subscribe", "topics": [f"job:{job_id}"]})
    hub = web_app.services().live
    await until(lambda: [len(viewer.topics) for viewer in hub._viewers], is_=[1, 1])
    for percent in range(1, UPDATES + 1):
        sql(
            "with written as (insert into tenure.progress (job_id, fence, percent) values (%s, 1, %s)"
            " on conflict (job_id) do update set percent = excluded.percent) select pg_notify('tenure', %s)",
            job_id,
            percent / 10,
            f"progress {job_id}",
        )
        await healthy.until(lambda message, wanted=percent / 10: message["job"]["progress_percent"] == wanted)
    assert sorted(len(viewer.outbox._messages) for viewer in hub._viewers) == [0, 1]
    stuck.close()


async def never_reading(server, token, message):
    """A WebSocket of which only the handshake is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    loop, text = asyncio.get_running_loop(), json.dumps(message).encode()
    await loop.sock_connect(connection, ("127.0.0.1", server.port))
    head = (
        f"GET /_api/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await loop.sock_sendall(connection, head.encode())
    assert b" 101 " in await loop.sock_recv(connection, 100)
    assert len(text) < 126
    await loop.sock_sendall(connection, bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
    return connection


async def test_only_jobs_that_exist_are_watched(jobs, serving, sql):
    server, token = await serving.serve(), await serving.token("read")
    job_id = await send(await server.client(await serving.token()))
    live = await server.live(token)
    await live.send(type="subscribe", topics=[f"job:{job_id}", *(f"job:{uuid4()}" for _ in range(100))])
    for _ in range(101):
        await live.receive()
    assert [str(watched) for (watched,) in sql("select job_id from tenure.watches")] == [job_id]


async def test_a_job_that_is_enqueued_after_the_subscription_is_followed_from_then_on(steps, serving, sql):
    server, token = await serving.serve(), await serving.token()
    live, job_id = await server.live(token), uuid4()
    await live.send(type="subscribe", topics=[f"job:{job_id}"])
    assert (await live.receive())["type"] == "gone"
    sql("select * from tenure.enqueue(%s)", json.dumps([{"id": str(job_id), "kind": "walk", "queue": "steps"}]))
    assert (await live.receive())["job"]["state"] == "pending"
    await until(lambda: sql("select job_id from tenure.watches"), is_=[(job_id,)])


def test_a_job_that_does_not_exist_is_looked_at_less_and_less_often():
    followed, looks, now = FollowedJob(LiveTopic(Subject.JOB, str(uuid4()))), [], 0.0
    for second in range(100):
        if followed.is_due(now := float(second)):
            looks.append(second)
            followed.missed(now, 1.0)
    assert looks == [0, 1, 3, 7, 15, 31, 61, 91]
    followed.found()
    assert followed.is_due(now)


async def test_a_job_that_was_deleted_is_not_looked_at_any_more(jobs, serving):
    web = WebApp(serving.app, WebOptions())
    hub, handle = web.services().live, await serving.app.enqueue("burn", {"why": "x"})
    with hub.viewing(Principal(name="x", scope=Scope.READ)) as viewer:
        hub.subscribe(viewer, LiveTopic(Subject.JOB, str(handle.id)))
        assert json.loads(await viewer.outbox.take())["type"] == "job"
        await handle.delete()
        assert json.loads(await viewer.outbox.take())["type"] == "gone"
        assert hub._jobs[handle.id].settled
    await web.close()


async def test_the_topics_of_a_principal_are_bounded_over_all_its_connections(jobs, serving, monkeypatch):
    """A hundred connections with a thousand ids each, which do not exist, kept the two connections for changes busy."""
    monkeypatch.setattr("tenure.web.live.hub.MOST_ACCOUNT_TOPICS", 3)
    server, token = await serving.serve(), await serving.token("read")
    first, second = [await server.live(token) for _ in range(2)]
    await first.send(type="subscribe", topics=["overview", "queue:a"])
    assert {(await first.receive())["type"] for _ in range(2)} == {"overview", "queue"}
    await second.send(type="subscribe", topics=["queue:a", "queue:b"])
    seen = {message["topic"]: message["type"] for message in [await second.receive() for _ in range(2)]}
    assert seen == {"queue:a": "queue", "queue:b": "error"}
    await first.send(type="unsubscribe", topics=["overview"])
    await first.send(type="ping")
    await first.until(lambda message: message["type"] == "pong")
    await second.send(type="subscribe", topics=["queue:b"])
    assert (await second.until(lambda message: message["topic"] == "queue:b"))["type"] == "queue"


@pytest.mark.parametrize("kind", ["subscribe", "unsubscribe"])
async def test_a_client_that_names_topics_without_end_is_disconnected(jobs, serving, monkeypatch, kind):
    """Each of them used to be answered, whether or not anyone read the answers; to unsubscribe kept the event loop as busy."""
    monkeypatch.setattr(websocket, "MOST_ACCOUNT_TOPICS", 3)
    monkeypatch.setattr(websocket, "TOPICS_PER_SECOND", 0.01)
    server, token = await serving.serve(), await serving.token("read")
    live = await server.live(token)
    await live.send(type=kind, topics=["1", "2"])
    assert {(await live.receive())["topic"] for _ in range(2)} == {"1", "2"}
    await live.send(type=kind, topics=["3", "4"])
    await closed(live, 4429)


async def test_messages_of_a_principal_are_bounded_over_all_its_connections(jobs, serving, monkeypatch):
    """A hundred connections with twenty messages a second each kept the event loop busy."""
    monkeypatch.setattr(websocket, "ACCOUNT_MESSAGES_PER_SECOND", 0.6)  # three at once
    server, token = await serving.serve(), await serving.token("read")
    first, second = [await server.live(token) for _ in range(2)]
    for live in (first, second, first):
        await live.send(type="ping")
        assert (await live.receive())["type"] == "pong"
    with suppress(ConnectionClosed):
        for _ in range(20):
            await second.send(type="ping")
    await closed(second, 4429)


async def test_a_client_that_asks_for_new_topics_without_end_is_disconnected(jobs, serving, monkeypatch):
    """The last error has the seconds to wait."""
    monkeypatch.setattr(websocket, "MOST_ACCOUNT_TOPICS", 3)
    monkeypatch.setattr(websocket, "TOPICS_PER_SECOND", 0.01)
    server, token = await serving.serve(), await serving.token("read")
    live = await server.live(token)
    await live.send(type="subscribe", topics=[f"queue:{n}" for n in range(3)])
    assert {(await live.receive())["topic"] for _ in range(3)} == {f"queue:{n}" for n in range(3)}
    await live.send(type="subscribe", topics=["queue:3", "nonsense"])
    await closed(live, 4429)
    [error] = [message for message in live.seen if message["type"] == "error"]
    assert (error["problem"]["status"], error["retry_after"], "topic" in error) == (429, 100, False)


async def test_what_is_kept_for_a_client_that_does_not_read_is_bounded_in_size(jobs, serving, monkeypatch):
    """Four of them made the server grow by 85 MB with topics of 1,000 characters that it refused."""
    monkeypatch.setattr(websocket, "MOST_UNSENT_CHARACTERS", 50_000)
    sizes: list[int] = []
    room, refused = Outbox.room, ["\N{GRINNING FACE}" * 1000, "x" * 1000, ["y" * 1000]]

    async def never(outbox):
        await asyncio.Event().wait()

    async def spied(outbox, *most):
        sizes.append(sum(len(topic) + len(text) for topic, text in outbox._messages.items()))
        assert sizes[-1] == outbox._size
        await room(outbox, *most)

    monkeypatch.setattr(Outbox, "take", never)
    monkeypatch.setattr(Outbox, "room", spied)
    server = await serving.serve()
    live = await server.live(await serving.token("read"))
    for n in range(40):
        await live.send(type="subscribe", topics=[f"{n} {m} {topic}" for m in range(2) for topic in refused])
    await until(lambda: bool(sizes) and sizes[-1] > 50_000)
    await live.connection.ping()
    one = max(after - before for before, after in pairwise(sizes))
    assert one < 6 * 4_000, "the answers to one message"
    assert max(sizes) < 50_000 + one


async def test_the_size_of_an_outbox_is_that_of_what_is_in_it():
    outbox = Outbox()
    outbox.put("a", "123")
    outbox.put("a", "12")
    outbox.put("b", "1")
    outbox.drop("b")
    outbox.drop("c")
    assert outbox._size == 3
    assert await outbox.take() == "12"
    assert outbox._size == 0


async def test_a_refused_topic_is_answered_with_its_first_300_bytes(jobs, serving):
    live = await (await serving.serve()).live(await serving.token("read"))
    for given in ("x" * 1000, "\N{EURO SIGN}" * 1000, "\ud800" * 1000):
        await live.send(type="subscribe", topics=[given])
        answer = await live.receive()
        assert answer["problem"]["type"] == "urn:tenure:problem:unknown-topic"
        assert len(answer["topic"].encode()) == 300


async def test_all_viewers_of_a_process_share_one_look_up(steps, serving):
    web = WebApp(serving.app, WebOptions())
    hub = web.services().live
    asked: list[str] = []
    read = hub._read

    async def counting(query):
        asked.append(query.name)
        return await read(query)

    hub._read = counting
    handles = [await serving.app.enqueue("walk") for _ in range(5)]
    principal = Principal(name="x", scope=Scope.READ)
    from contextlib import ExitStack

    with ExitStack() as stack:
        viewers = [stack.enter_context(hub.viewing(principal)) for _ in range(50)]
        for viewer in viewers:
            for handle in handles:
                hub.subscribe(viewer, LiveTopic(Subject.JOB, str(handle.id)))
        for viewer in viewers:
            assert {json.loads(await viewer.outbox.take())["job"]["state"] for _ in handles} == {"pending"}
        assert asked.count("live/find_versions") <= 2
        assert asked.count("live/find_shown") == 1
    await until(lambda: not hub._jobs and not hub._connections)
    await web.close()


async def test_every_viewer_ends_with_the_true_state_when_postgres_drops_all_connections(steps, serving, server_dsn, dsn):
    server, token = await serving.serve(), await serving.token()
    admin = await server.client(token)
    ids = [await send(admin, "walk", {}) for _ in range(3)]
    lives = [await server.live(token) for _ in range(10)]
    for live in lives:
        await live.send(type="subscribe", topics=[f"job:{job_id}" for job_id in ids])
        for _ in ids:
            await live.receive()
    name = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(server_dsn, autocommit=True) as killer:
        killer.execute(KILL, [name, "tenure%"])
        async with serving.app.running():
            for _ in ids:
                steps.put_nowait(101)
            killer.execute(KILL, [name, "tenure web%"])
            for live in lives:
                final = {}
                while set(final.values()) != {"completed"} or len(final) < len(ids):
                    message = await live.receive(30)
                    final[message["topic"]] = message["job"]["state"]


async def test_connections_end_when_the_server_stops(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    live = await server.live(token)
    await server.stop()
    with pytest.raises(ConnectionClosed):
        while True:
            await live.receive()
