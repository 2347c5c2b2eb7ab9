"""Live updates: snapshots, changes, resuming, access, slow readers, outages."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tenure import Context
from tenure.web import Principal, Scope, revoke_token, tracker_token
from tenure.web.live import websocket
from tenure.web.live.outbox import Outbox
from tenure.web.security import tokens
from tests.waiting import until
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


@pytest.mark.parametrize("frame", ["[]", "nonsense", "[" * 60_000, b"\xff\xfe", "1"])
async def test_malformed_frames_end_their_connection_and_no_other(jobs, serving, frame):
    server, token = await serving.serve(), await serving.token()
    bystander, live = await server.live(token), await server.live(token)
    await live.connection.send(frame)
    with pytest.raises(ConnectionClosed):
        while True:
            await live.receive()
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


# Many viewers, slow ones, and outages


def test_a_slow_reader_gets_the_newest_state_of_each_topic_and_keeps_no_more():
    outbox = Outbox()
    for n in range(10_000):
        outbox.put("job:1", f"one {n}")
        outbox.put("job:2", f"two {n}")
    assert len(outbox._messages) == 2
    taken = [asyncio.run(take(outbox)) for _ in range(2)]
    assert taken == ["one 9999", "two 9999"]


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
    assert len(refused) == 200, "nothing is lost when it goes on"


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


async def test_all_viewers_of_a_process_share_one_look_up(steps, serving):
    from tenure.web.web_app import WebApp
    from tenure.web.web_options import WebOptions

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

    from tenure.web.live.topics import Subject, Topic

    with ExitStack() as stack:
        viewers = [stack.enter_context(hub.viewing(principal)) for _ in range(50)]
        for viewer in viewers:
            for handle in handles:
                hub.subscribe(viewer, Topic(Subject.JOB, str(handle.id)))
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
