"""Tokens, scopes and limits (S2, S9), sessions (S3), signed access to one job, and the hook of a host application."""

from __future__ import annotations

import hashlib
from uuid import uuid4

import pytest
from websockets.exceptions import InvalidStatus

from tenure import ConfigError
from tenure.web import Principal, Scope, create_token, list_tokens, revoke_token, tracker_token
from tenure.web.route_table import ROUTES
from tenure.web.security import rate_limits, tokens
from tenure.web.security.hosts import network_of
from tenure.web.web_app import WebApp
from tenure.web.web_options import WebOptions
from tests.waiting import until
from tests.web.serving import asking_from
from tests.web.test_jobs import send

NEVER = pytest.mark.usefixtures("rechecked")


@pytest.fixture
def rechecked(monkeypatch):
    """Every answer about a token is asked for again."""
    monkeypatch.setattr(tokens, "RECHECK", 0.0)


def path_of(route):
    return (
        route.openapi_path.replace("{id}", str(uuid4()))
        .replace("{kind}", "x")
        .replace("{name}", "kind:x")
        .replace("{queue}", "x")
    )


async def test_without_a_token_nothing_is_answered(jobs, serving):
    web = await (await serving.serve()).client()
    guarded = [route for route in ROUTES if route.scope]
    assert len(guarded) > 50
    for route in guarded:
        answer = await web.request(route.method, path_of(route), json={} if route.changes else None)
        assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer"), (route.method, route.path)
        assert answer.json()["type"] == "urn:tenure:problem:unauthorized", (route.method, route.path)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer nonsense",
        "Bearer tnr_" + "x" * 43,
        "Basic eDp5",
        "Bearer tnt_a.b",
        "Bearer tnr_é".encode("latin-1"),
        "Bearer " + "t" * 5000,
    ],
)
async def test_a_wrong_token_is_refused(jobs, serving, given):
    web = await (await serving.serve()).client()
    assert (await web.get("/jobs", headers={"authorization": given})).status_code == 401


async def test_a_token_has_256_bits_and_only_its_hash_is_stored(serving, sql):
    token = await serving.token()
    assert len(token) >= 4 + 43
    assert sql("select hash from tenure.tokens") == [(hashlib.sha256(token.encode()).hexdigest(),)]
    assert token not in str(sql("select t::text from tenure.tokens t"))


async def test_each_route_needs_its_scope(jobs, serving):
    server = await serving.serve()
    for scope in Scope:
        web = await server.client(await serving.token(scope.value))
        for route in ROUTES:
            if route.scope is None or route.path.endswith("/events"):
                continue
            answer = await web.request(route.method, path_of(route), json={} if route.changes and route.body else None)
            refused = answer.status_code == 403 and answer.json()["type"] == "urn:tenure:problem:scope"
            assert refused is not scope.includes(route.scope), (scope, route.method, route.path, answer.text)
            assert answer.status_code < 500


@NEVER
async def test_a_token_ends_when_it_is_revoked_or_expires_and_two_are_valid_during_rotation(jobs, serving, sql):
    server = await serving.serve()
    old, new = [await server.client(await serving.token(name=name)) for name in ("old", "new")]
    assert [(await web.get("/jobs")).status_code for web in (old, new)] == [200, 200]
    assert len(await revoke_token(serving.app, "old")) == 1
    assert [(await web.get("/jobs")).status_code for web in (old, new)] == [401, 200]
    sql("update tenure.tokens set expires_at = now() where name = 'new'")
    assert (await new.get("/jobs")).status_code == 401
    assert (await list_tokens(serving.app), len(await list_tokens(serving.app, revoked=True))) == ([], 2)


async def test_a_revoked_token_is_noticed_within_its_time(jobs, serving, monkeypatch):
    monkeypatch.setattr(tokens, "RECHECK", 0.3)
    web = await serving.admin()
    assert (await web.get("/jobs")).status_code == 200
    await revoke_token(serving.app, "tests")

    async def status():
        return (await web.get("/jobs")).status_code

    await until(status, is_=401)


async def test_a_token_that_expires_is_not_used_until_it_is_looked_up_again(jobs, serving, sql, monkeypatch):
    server, token = await serving.serve(), await serving.token()
    web, (page, _) = await server.client(token), await sign_in(server, token)

    async def statuses():
        return [(await client.get("/jobs")).status_code for client in (web, page)]

    monkeypatch.setattr(tokens, "RECHECK", 0.0)
    assert await statuses() == [200, 200]
    sql("update tenure.tokens set expires_at = clock_timestamp() + interval '3 seconds' where purpose = 'api' and name = 'tests'")
    monkeypatch.setattr(tokens, "RECHECK", 1000.0)
    assert await statuses() == [200, 200]
    await until(statuses, is_=[401, 401], within=30)


async def test_a_token_may_be_limited_to_queues_and_kinds(jobs, serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    export, burn = await send(admin), await send(admin, "burn", {"why": "x"})
    for limits in ({"kinds": ["burn"]}, {"queues": ["default"]}):
        web = await server.client(await serving.token("admin", **limits))
        assert {job["kind"] for job in (await web.get("/jobs")).json()["jobs"]} == {"burn"}
        assert (await web.get(f"/jobs/{export}")).status_code == 404
        assert (await web.post(f"/jobs/{export}/cancel")).status_code == 404
        assert (await web.get(f"/jobs/{burn}")).status_code == 200
        assert (await web.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}})).status_code == 403
        assert (await web.post("/jobs/burn/dispatch", json={"args": {"why": "x"}})).status_code == 202
        for path in ("/workers", "/leaders", "/schedules", "/limits", "/stats", "/metrics", "/audit", "/stats/series"):
            assert (await web.get(path)).status_code == 403, path
        bulk = {"action": "cancel", "filter": {"state": ["pending"]}, "dry_run": False}
        assert (await web.post("/jobs/bulk", json=bulk)).status_code == 403
        assert (await web.post("/queues/exports/pause")).status_code == 403
    by_queue = await server.client(await serving.token("operate", queues=["exports"]))
    assert {queue["name"] for queue in (await by_queue.get("/queues")).json()["queues"]} == {"exports"}
    assert (
        await by_queue.post("/jobs/export_users/dispatch", json={"args": {"format": "csv"}, "queue": "default"})
    ).status_code == 403


async def test_requests_of_a_token_are_limited(jobs, serving):
    server = await serving.serve(rate=0.1)
    web = await server.client(await serving.token(rate=None))
    assert (await web.get("/session")).status_code == 200
    refused = await web.get("/session")
    assert (refused.status_code, int(refused.headers["retry-after"]) in range(8, 11)) == (429, True)
    free = await server.client(await serving.token(rate=0))
    assert {(await free.get("/session")).status_code for _ in range(30)} == {200}


async def test_sessions_count_as_the_token_that_they_were_started_with(jobs, serving, monkeypatch):
    """A token could start any number of them, each with its own requests and connections."""
    monkeypatch.setattr("tenure.web.live.hub.MOST_CONNECTIONS", 2)
    server, token = await serving.serve(rate=0.1), await serving.token(rate=None)
    web, _ = await sign_in(server, token)
    assert (await web.get("/session")).status_code == 429
    free = await serving.token(name="free")
    for _ in range(2):
        web, _ = await sign_in(server, free)
        cookie = {"cookie": f"tenure_session={web.cookies['tenure_session']}"}
        live = await server.live(additional_headers=cookie, origin=server.url)
        assert (await live.receive())["type"] == "ready"
    refused = await server.live()
    await refused.send(type="auth", token=free)
    assert (await refused.receive())["problem"]["status"] == 429


async def test_sign_ins_with_a_token_are_limited(jobs, serving, sql, monkeypatch):
    """Each stores a session for twelve hours. Their number was not limited for a token without a limit of its own."""
    monkeypatch.setattr("tenure.web.security.authentication.SIGN_INS_PER_MINUTE", 3)
    server, token = await serving.serve(), await serving.token()
    for _ in range(3):
        await sign_in(server, token)
    web = await server.client(origin=server.url)
    refused = await web.post("/session", json={"token": token})
    assert (refused.status_code, int(refused.headers["retry-after"]) in range(10, 21)) == (429, True)
    assert refused.json()["detail"].startswith("more sign-ins with this token than are allowed: wait ")
    assert sql("select count(*) from tenure.tokens where purpose = 'session'") == [(3,)]
    await sign_in(server, await serving.token(name="other"))
    assert (await (await server.client(token)).get("/session")).status_code == 200


async def test_wrong_tokens_of_an_address_are_limited_but_known_ones_work(jobs, serving, monkeypatch):
    monkeypatch.setattr(tokens, "RECHECK", 0.0)
    server = await serving.serve()
    good = await server.client(await serving.token())
    assert (await good.get("/session")).status_code == 200
    guess = await server.client()
    answers = [(await guess.get("/session", headers={"authorization": f"Bearer tnr_{n}"})).status_code for n in range(8)]
    assert answers == [401] * rate_limits.FAILURES_PER_MINUTE + [429] * 3
    assert (await good.get("/session")).status_code == 200


async def test_requests_of_an_address_are_limited_before_authentication(jobs, serving):
    web_app = WebApp(serving.app, WebOptions(address_rate=0.1))
    token = await serving.token()
    servers = [await serving.serve(asking_from(address, web_app)) for address in ("2001:db8::1", "2001:db8::2:1", "127.0.0.1")]
    near, far, local = [await server.client(token) for server in servers]
    assert [(await web.get("/session")).status_code for web in (near, far)] == [200, 429]
    assert (await far.post("/session", json={"token": token})).status_code == 429
    with pytest.raises(InvalidStatus):
        await servers[1].live(token)
    assert (await far.get("/healthz")).status_code == 200
    assert {(await local.get("/session")).status_code for _ in range(5)} == {200}


@pytest.mark.parametrize(
    ("ip", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8::2:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::1", "::1"),
        ("unknown", "unknown"),
    ],
)
def test_what_counts_as_one_address(ip, network):
    assert network_of(ip) == network


async def test_wrong_tokens_and_refused_changes_are_logged(jobs, serving, caplog):
    server = await serving.serve()
    web = await server.client(await serving.token("read", "ann"))
    for _ in range(2):  # the same one again is not another attempt
        await web.get("/session", headers={"authorization": "Bearer tnr_wrong"})
    await web.post("/queues/x/pause")
    await (await server.client()).post("/queues/x/pause")
    await web.post("/queues/x/pause", headers={"origin": "https://evil.example"})
    session, _ = await sign_in(server, await serving.token("operate", "bob"))
    assert (await session.post("/queues/x/pause")).json()["type"] == "urn:tenure:problem:csrf"
    found = [
        (one.message, getattr(one, "reason", None), getattr(one, "actor", None))
        for one in caplog.records
        if "refused" in one.message
    ]
    assert found == [
        ("token refused", None, None),
        ("change refused", "scope", "ann"),
        ("change refused", "unauthorized", None),
        ("change refused", "origin", None),
        ("change refused", "csrf", "bob"),
    ]
    assert {one.address for one in caplog.records if "refused" in one.message} == {"127.0.0.1"}
    assert "tnr_wrong" not in caplog.text


# Sessions


async def sign_in(server, token):
    web = await server.client(origin=server.url)
    answer = await web.post("/session", json={"token": token})
    assert answer.status_code == 200, answer.text
    return web, answer


@NEVER
async def test_a_browser_signs_in_with_a_cookie_that_scripts_cannot_read(jobs, serving, sql):
    server, token = await serving.serve(), await serving.token("operate")
    web, answer = await sign_in(server, token)
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert "Secure" not in cookie  # plain HTTP on loopback
    assert token not in cookie
    assert (await web.get("/session")).json()["via"] == "session"
    assert answer.json()["csrf"] == (await web.get("/session")).json()["csrf"]
    # The origin alone is not enough, nor is the CSRF token alone.
    assert (await web.post("/queues/x/pause")).json()["type"] == "urn:tenure:problem:csrf"
    csrf = {"x-csrf-token": answer.json()["csrf"]}
    assert (await web.post("/queues/x/pause", headers={**csrf, "origin": "https://evil.example"})).status_code == 403
    del web.headers["origin"]
    assert (await web.post("/queues/x/pause", headers=csrf)).status_code == 403
    assert (await web.post("/queues/x/pause", headers={**csrf, "sec-fetch-site": "same-origin"})).status_code == 200
    assert (await web.delete("/session", headers={**csrf, "origin": server.url})).status_code == 204
    assert sql("select count(*) from tenure.tokens where purpose = 'session' and revoked_at is null") == [(0,)]


@NEVER
async def test_a_page_with_a_session_that_has_ended_does_not_lock_out_its_address(jobs, serving, sql):
    """Every request of an open dashboard counted as a wrong token, so that its user could not sign in again."""
    server, token = await serving.serve(), await serving.token()
    web, _ = await sign_in(server, token)
    sql("update tenure.tokens set expires_at = now() where purpose = 'session'")
    for _ in range(rate_limits.FAILURES_PER_MINUTE + 3):
        assert (await web.get("/jobs")).status_code == 401
    new = await serving.token(name="new")
    assert (await web.post("/session", json={"token": new})).status_code == 200


@NEVER
async def test_a_program_with_a_revoked_token_does_not_lock_out_its_address(jobs, serving):
    server, token = await serving.serve(), await serving.token(name="old")
    await revoke_token(serving.app, "old")
    for _ in range(rate_limits.FAILURES_PER_MINUTE + 3):
        assert (await (await server.client(token)).get("/jobs")).status_code == 401
    assert (await (await server.client(await serving.token(name="new"))).get("/jobs")).status_code == 200


async def test_cookies_are_not_accepted_from_pages_of_other_sites(jobs, serving):
    """Sites that may use the API with a token. A cookie would give them what the user of the browser may do."""
    shop = {"origin": "https://shop.example"}

    def authorize(request):
        return Principal(name="ann", scope=Scope.ADMIN) if "host_session" in request.cookies else None

    server = await serving.serve(allowed_origins=["https://shop.example"], authorize=authorize)
    web, answer = await sign_in(server, await serving.token())
    session = {"cookie": f"tenure_session={web.cookies['tenure_session']}"}
    for cookie in (session, {"cookie": "host_session=1"}):
        own = await server.client(**cookie)
        assert (await own.get("/session")).status_code == 200
        assert (await own.get("/session", headers={"origin": server.url})).status_code == 200
        csrf = {"x-csrf-token": answer.json()["csrf"]}
        for more in ({}, {"sec-fetch-site": "same-site"}):
            assert (await own.get("/session", headers={**shop, **more})).status_code == 401
            assert (await own.post("/queues/x/pause", headers={**shop, **more, **csrf})).status_code == 401
        live = await server.live(additional_headers=cookie, origin="https://shop.example")
        await live.send(type="subscribe", topics=["overview"])
        assert (await live.receive())["problem"]["status"] == 401
    token = {"authorization": f"Bearer {await serving.token()}"}
    assert (await (await server.client(**session)).get("/session", headers={**shop, **token})).status_code == 200


async def test_a_cookie_is_secure_unless_the_server_is_local(jobs, serving):
    server, token = await serving.serve(allowed_hosts=["jobs.example"]), await serving.token()
    web = await server.client()
    answer = await web.post("/session", json={"token": token}, headers={"host": "jobs.example"})
    assert "; Secure" in answer.headers["set-cookie"]


@NEVER
async def test_a_session_ends_with_the_token_it_was_started_with(jobs, serving):
    server = await serving.serve()
    web, _ = await sign_in(server, await serving.token(name="ann"))
    assert (await web.get("/jobs")).status_code == 200
    await revoke_token(serving.app, "ann")
    assert (await web.get("/jobs")).status_code == 401


async def test_a_session_needs_a_valid_api_token(jobs, serving):
    web = await (await serving.serve()).client()
    assert (await web.post("/session", json={"token": "tnr_wrong"})).status_code == 401
    tracker = await tracker_token(serving.app, uuid4())
    assert (await web.post("/session", json={"token": tracker})).status_code == 422


# One job


async def test_a_tracker_token_shows_one_job_without_its_input(jobs, serving):
    server = await serving.serve()
    admin = await server.client(await serving.token())
    job_id, other = await send(admin, "burn", {"why": "x"}), await send(admin)
    async with jobs.running():
        await until(lambda: is_over(admin, job_id))
    made = await admin.post(f"/jobs/{job_id}/tracker", json={"expires_in": "15m"})
    assert made.status_code == 201
    web = await server.client(made.json()["token"])
    shown = (await web.get(f"/jobs/{job_id}")).json()
    assert (shown["status"], shown["last_error"], shown["failed"]) == ("dead_letter", "x", True)
    assert not {"input", "error", "worker_id", "auth", "meta", "enqueued_by"} & shown.keys()
    assert (await web.get(f"/jobs/{other}")).status_code == 403
    for path in ("/jobs", f"/jobs/{job_id}/report", "/kinds", "/stats", "/session", "/openapi.json"):
        assert (await web.get(path)).status_code == 403, path
    assert (await web.post(f"/jobs/{job_id}/cancel")).status_code == 403
    assert (await web.post(f"/jobs/{job_id}/tracker")).status_code == 403
    may_cancel = await server.client(await tracker_token(serving.app, other, cancel=True))
    assert (await may_cancel.post(f"/jobs/{other}/cancel")).status_code == 200
    assert (await may_cancel.post(f"/jobs/{job_id}/cancel")).status_code == 403


async def is_over(web, job_id):
    return (await web.get(f"/jobs/{job_id}")).json()["over"]


async def test_a_tracker_token_expires_and_cannot_be_changed(jobs, serving, monkeypatch):
    server = await serving.serve()
    job_id = await send(await server.client(await serving.token()))
    token = await tracker_token(serving.app, job_id, expires_in="1m")
    web = await server.client()
    ask = lambda given: web.get(f"/jobs/{job_id}", headers={"authorization": f"Bearer {given}"})  # noqa: E731
    assert (await ask(token)).status_code == 200
    body, _, signature = token.removeprefix("tnt_").partition(".")
    for wrong in (f"tnt_{body}.{signature[::-1]}", f"tnt_{body[:-2]}AA.{signature}", f"tnt_{body}.", f"tnt_{body}"):
        assert (await ask(wrong)).status_code == 401
    from tenure.web.security import trackers

    late = trackers.time.time() + 61
    monkeypatch.setattr(trackers.time, "time", lambda: late)
    assert (await ask(token)).status_code == 401


async def test_pages_with_expired_tracker_tokens_do_not_lock_out_others_with_the_same_address(jobs, serving):
    server, token = await serving.serve(), await serving.token()
    for _ in range(rate_limits.FAILURES_PER_MINUTE + 3):
        assert (await (await server.client("tnt_expired.x")).get("/jobs")).status_code == 401
    assert (await (await server.client(token)).get("/jobs")).status_code == 200


# The host's own users


async def test_a_hook_names_the_principal(jobs, serving, sql):
    async def authorize(request):
        name = request.headers.get("x-user")
        return (
            None
            if name is None
            else Principal(name=name, scope=Scope.OPERATE, kinds=frozenset({"export_users"}), auth={"user": name})
        )

    server = await serving.serve(authorize=authorize)
    assert (await (await server.client()).get("/jobs")).status_code == 401
    ann = await server.client(**{"x-user": "ann"})
    assert (await ann.get("/session")).json() == {
        "name": "ann", "scope": "operate", "via": "hook", "queues": None, "kinds": ["export_users"],
        "read_only": False, "csrf": None,
    }  # fmt: skip
    job_id = await send(ann)
    assert (await ann.post("/jobs/burn/dispatch", json={"args": {"why": "x"}})).status_code == 403
    assert sql("select enqueued_by, auth from tenure.jobs where id = %s", job_id) == [("ann", {"user": "ann"})]
    assert (await (await server.client(await serving.token())).get("/jobs")).status_code == 200


async def test_a_hook_that_fails_answers_nothing_of_its_error(jobs, serving, caplog):
    def authorize(request):
        raise RuntimeError("the password is swordfish")

    answer = await (await (await serving.serve(authorize=authorize)).client()).get("/jobs")
    assert (answer.status_code, "swordfish" in answer.text) == (500, False)


def test_limits_of_a_principal_are_sets():
    with pytest.raises(ConfigError, match="frozenset"):
        Principal(name="ann", queues="mail")
    assert Principal(name="ann", scope="operate").scope is Scope.OPERATE


@pytest.mark.parametrize(
    "options", [{"queues": "mail"}, {"scope": "root"}, {"name": ""}, {"name": "a\nb"}, {"rate": -1}, {"expires_in": "soon"}]
)
async def test_tokens_that_cannot_be_created(serving, options):
    given = {"name": "x", "scope": "read", **options}
    with pytest.raises(ConfigError):
        await create_token(serving.app, given.pop("name"), given.pop("scope"), **given)
