"""`tenure demo` as a newcomer sees it, with and without a terminal. It leaves nothing behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import httpx2
import pytest

from tenure import State
from tenure.embedded.finding import NOTE_NAME
from tenure.simulate import demo as shop
from tests.cli.started import started
from tests.processes import free_port

SENTENCES = [
    "started a PostgreSQL in a temporary directory",
    "started a supervisor with 2 worker processes",
    "retry: the bank did not answer; order 1000 charged on attempt 2",
    r"kill -9 of worker process \d+, which is running \d+ jobs?",
    r"requeued after [\d.]+ m?s, and all ran again after [\d.]+ m?s",
    "dead-lettered after 3 crashes",
    "burst: 2,000 newsletters enqueued in",
    "dead letter: LookupError: ada@exmaple.org: no such domain",
    "replayed with the correct address: invoice 1042 sent to ada@example.org",
    "crashed with its worker",
    "No job was lost. Every job ended as expected.",
    r"\d,\d\d\d  jobs enqueued: \d,\d\d\d completed, 1 dead-lettered",  # the stream lasts as long as the steps do
    r"\d+  failed once and completed on the second attempt",
    "4  worker processes killed or crashed, with",
    "from enqueue to start \\(median of",
    "jobs finished in the busiest second",
    "simulate --mix hostile",
    "init shop",
]


@pytest.fixture
def reachable():
    """A folder that a server account can reach too, when the tests run as root; in it, one to start from and one for what is
    temporary."""
    with tempfile.TemporaryDirectory(prefix="tenure-try-") as folder:
        for part in (Path(folder), Path(folder, "here"), Path(folder, "tmp")):
            part.mkdir(exist_ok=True)
            part.chmod(0o711)
        yield Path(folder)


def demo(folder: Path, *words, web_port: int = 0, **more):
    # The demo must ignore this setting: no server listens there.
    return started(
        folder / "here",
        "demo",
        "--web-port",
        str(web_port),
        *words,
        TMPDIR=str(folder / "tmp"),
        TENURE_DSN="postgresql://nobody@127.0.0.1:1/shop",
        **more,
    )


async def nothing_is_left(folder: Path, eventually) -> None:
    assert list((folder / "here").iterdir()) == []
    await eventually(lambda: list((folder / "tmp").iterdir()), is_=[])
    await eventually(lambda: str(folder) not in command_lines())


def command_lines() -> str:
    return subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
async def test_the_demo_keeps_its_promises_and_leaves_nothing(reachable, eventually):
    """Without a terminal and with one, at the same time. The second runs with --keep until it is stopped."""
    port = free_port()
    with demo(reachable) as plain, demo(reachable, "--keep", columns=80, web_port=port) as shown:
        assert shown.says("started a PostgreSQL", within=60), shown.said
        await eventually((reachable / "here" / NOTE_NAME).is_file)
        with started(reachable / "here", "jobs", "list", "--json") as asking:
            assert asking.ends() == 0, asking.said
        shown.read()
        assert "No job was lost" not in shown.said, "the server is found while the demo runs"
        assert shown.says(" explain ", within=120), shown.said
        assert plain.ends() == 0, plain.said
        assert "in this directory:" in shown.said
        assert "export" not in shown.said
        with started(reachable / "here", "jobs", "list", "--kind", "open_upload", "--json") as asking:
            assert asking.ends() == 0, asking.said
            [pill] = json.loads(asking.said)["jobs"]
        assert pill["state"] == "dead_letter"
        assert httpx2.get(f"http://127.0.0.1:{port}/_api/jobs/{pill['id']}", trust_env=False).json()["status"] == "dead_letter"
        assert str(reachable) in command_lines()
        shown.signal(signal.SIGTERM)
        assert shown.ends() == 128 + signal.SIGTERM, shown.said
    for said in (plain.said, shown.said):
        for sentence in SENTENCES:
            assert re.search(sentence, " ".join(said.split())) or re.search(sentence, said), (sentence, said)
    assert f"started a web server: http://127.0.0.1:{port} (dashboard" in " ".join(shown.said.split())
    assert "web server" not in plain.said
    assert "demo --keep" in plain.said
    assert "demo --keep" not in shown.said
    assert re.search(r"cd shop && \S.* dev ", plain.said)
    assert plain.raw.isascii()
    assert all(char.isprintable() or char == "\n" for char in plain.raw)
    assert re.search(r"done: mail \d+ of \d+, payments", plain.said)
    assert "━━━" in shown.said
    assert "of 1000 frames" in shown.said
    await nothing_is_left(reachable, eventually)


@pytest.mark.slow
async def test_a_demo_that_is_stopped_cleans_up_as_well(reachable, eventually):
    with demo(reachable, columns=80) as stopped:
        assert stopped.says("enqueuing about 40 jobs"), stopped.said
        stopped.signal(signal.SIGINT)
        assert stopped.ends(within=30) == 128 + signal.SIGINT, stopped.said
    assert "Traceback" not in stopped.said
    await nothing_is_left(reachable, eventually)


def job(kind, **changes):
    given = {"id": uuid4(), "kind": kind, "input": {"order": 1}, "state": State.COMPLETED, "attempt": 1}
    return SimpleNamespace(**given | changes)


def test_the_stream_is_always_the_same_and_every_queue_has_its_share():
    def drawn():
        return [[call.kind for call in shop.stream(tick)] for tick in range(100)]

    assert drawn() == drawn()
    kinds = {kind for batch in drawn() for kind in batch}
    assert kinds == {"send_receipt", "charge_card", "make_thumbnail", *shop.LONG}
    assert {kind.queue for kind in shop.app.kinds.values()} == set(shop.QUEUES)


def test_a_job_with_an_unexpected_end_is_a_fault():
    good = [job("send_receipt"), job("charge_card", attempt=2), job("open_upload", state=State.DEAD_LETTER, attempt=0)]
    assert list(shop.differences(good)) == []
    [told] = shop.differences([job("charge_card")])
    assert "charge_card 1" in told
    assert "is completed after 1 attempts; expected completed after 2" in told
    assert len(list(shop.differences([job("send_receipt", state=State.DEAD_LETTER), job("send_receipt", attempt=2)]))) == 2
