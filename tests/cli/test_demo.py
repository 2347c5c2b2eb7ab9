"""`tenure demo` as a newcomer sees it, with a terminal and without, and what is left of it: nothing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tenure import State
from tenure.embedded.finding import NOTE_NAME
from tenure.simulate import demo as shop
from tests.cli.started import started

SENTENCES = [
    "a PostgreSQL of our own is up",
    "a supervisor with 2 worker processes is up",
    "the bank did not answer; tried again: order 1000 charged at attempt 2",
    r"kill -9 of worker process \d+, which is running \d+ jobs?",
    r"given back after [\d.]+ m?s, and all run again after [\d.]+ m?s",
    "it took down 3 processes, and is set aside",
    "2,000 newsletters handed in within",
    "a dead letter: LookupError: ada@exmaple.org: there is no such domain",
    "mended and replayed: invoice 1042 sent to ada@example.org",
    "crashed with its worker",
    "Nothing was lost. Every job ended exactly as it should.",
    r"\d,\d\d\d  jobs handed in: \d,\d\d\d completed, 1 set aside",  # the stream lasts as long as the acts do
    r"\d+  failed once, and completed at the second attempt",
    "4  worker processes died, with",
    "from enqueue to start, the median of",
    "jobs done in the best second",
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


def demo(folder: Path, *words, **more):
    # What is set here must not matter: nobody listens at that address.
    return started(
        folder / "here", "demo", *words, TMPDIR=str(folder / "tmp"), TENURE_DSN="postgresql://nobody@127.0.0.1:1/shop", **more
    )


async def nothing_is_left(folder: Path, eventually) -> None:
    assert list((folder / "here").iterdir()) == []
    await eventually(lambda: list((folder / "tmp").iterdir()), is_=[], within=5)
    await eventually(lambda: str(folder) not in command_lines(), within=5)


def command_lines() -> str:
    return subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
async def test_the_demo_keeps_its_promises_and_leaves_nothing(reachable, eventually):
    """Without a terminal and with one, at the same time. The second is kept, until it is told to go."""
    with demo(reachable) as plain, demo(reachable, "--keep", columns=80) as shown:
        assert shown.says("a PostgreSQL of our own is up", within=60), shown.said
        await eventually((reachable / "here" / NOTE_NAME).is_file, within=5)
        with started(reachable / "here", "jobs", "list", "--json") as asking:
            assert asking.ends() == 0, asking.said
        shown.read()
        assert "Nothing was lost" not in shown.said, "it is found while the show is on"
        assert shown.says(" explain ", within=120), shown.said
        assert plain.ends() == 0, plain.said
        assert "in this folder:" in shown.said
        assert "export" not in shown.said
        with started(reachable / "here", "jobs", "list", "--kind", "open_upload", "--json") as asking:
            assert asking.ends() == 0, asking.said
            [pill] = json.loads(asking.said)["jobs"]
        assert pill["state"] == "dead_letter"
        assert str(reachable) in command_lines()
        shown.signal(signal.SIGTERM)
        assert shown.ends() == 128 + signal.SIGTERM, shown.said
    for said in (plain.said, shown.said):
        for sentence in SENTENCES:
            assert re.search(sentence, " ".join(said.split())) or re.search(sentence, said), (sentence, said)
    assert "demo --keep" in plain.said
    assert "demo --keep" not in shown.said
    assert re.search(r"cd shop && \S.* dev ", plain.said)
    assert plain.raw.isascii()
    assert all(char.isprintable() or char == "\n" for char in plain.raw)
    assert re.search(r"done so far: mail \d+ of \d+, payments", plain.said)
    assert "━━━" in shown.said
    assert "of 1000 frames" in shown.said
    await nothing_is_left(reachable, eventually)


@pytest.mark.slow
async def test_a_demo_that_is_stopped_cleans_up_as_well(reachable, eventually):
    with demo(reachable, columns=80) as stopped:
        assert stopped.says("jobs are coming in"), stopped.said
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
    kinds = {kind for handful in drawn() for kind in handful}
    assert kinds == {"send_receipt", "charge_card", "make_thumbnail", *shop.LONG}
    assert {kind.queue for kind in shop.app.kinds.values()} == set(shop.QUEUES)


def test_a_job_that_ended_otherwise_is_a_fault():
    good = [job("send_receipt"), job("charge_card", attempt=2), job("open_upload", state=State.DEAD_LETTER, attempt=0)]
    assert list(shop.differences(good)) == []
    [told] = shop.differences([job("charge_card")])
    assert "charge_card 1" in told
    assert "is completed after 1 attempts, but should be completed after 2" in told
    assert len(list(shop.differences([job("send_receipt", state=State.DEAD_LETTER), job("send_receipt", attempt=2)]))) == 2
