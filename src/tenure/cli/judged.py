"""Runs a campaign, shows how far it is, and tells the verdict."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

import click
from rich.markup import escape

from tenure.chaos.campaign_options import CampaignOptions, CampaignOutcome, CampaignProgress, ShowProgress
from tenure.chaos.checker import check as judge
from tenure.chaos.ledger import Ledger
from tenure.chaos.verdict import CheckerVerdict
from tenure.cli.output import emit
from tenure.cli.stage import Scene, Stage, open_stage
from tenure.manager.loops import run_loop

SEEDS = 1_000_000
LATEST = 6

PHASES = {
    "faults": "injecting faults",
    "drain": "faults are over; waiting until all jobs are done",
    "export": "exporting the record",
}

Conduct = Callable[[Path, ShowProgress], Coroutine[Any, Any, CampaignOutcome]]


@dataclass(frozen=True, slots=True)
class Goal:
    """What must be reached before the faults end."""

    seconds: float
    jobs: int
    faults: int

    @staticmethod
    def of(order: CampaignOptions) -> Goal:
        return Goal(order.seconds, order.jobs, order.faults)


@dataclass(frozen=True, slots=True)
class Judged:
    outcome: CampaignOutcome
    verdict: CheckerVerdict

    @property
    def good(self) -> bool:
        return self.verdict.ok and not self.outcome.unexpected_errors and not self.outcome.unexpected_exits


def drawn_seed(seed: int | None) -> int:
    return SystemRandom().randrange(SEEDS) if seed is None else seed


def run_and_judge(seed: int, out: Path | None, conduct: Conduct, goal: Goal, *, as_json: bool) -> Judged:
    """The ledger is kept in `out`, or if there are violations."""
    stage = open_stage(silent=as_json)
    with _folder(out) as folder, stage:
        stage.say(f"seed {seed}: the same plan again with --seed {seed}")
        outcome = run_loop(conduct(folder, Watching(stage, goal).show))
        stage.say("judging the record")
        judged = Judged(outcome, judge(Ledger(folder)))
        kept = None if judged.good and out is None else folder
        if kept is None:
            shutil.rmtree(folder)
    stage.freeze()
    _tell(stage, judged, kept, as_json=as_json)
    return judged


class Watching:
    """Shows a campaign under way: what moves, and the latest faults."""

    def __init__(self, stage: Stage, goal: Goal) -> None:
        self._stage = stage
        self._goal = goal
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._phase = ""

    def show(self, sight: CampaignProgress) -> None:
        if sight.latest and (not self._latest or self._latest[-1] != sight.latest):
            self._latest.append(sight.latest)
        if sight.phase != self._phase:
            self._phase = sight.phase
            self._stage.say(PHASES[sight.phase])
        facts = [
            ("time", f"{sight.elapsed:.0f}{_of(self._goal.seconds)} s"),
            ("jobs accepted", f"{sight.accepted:,}{_of(self._goal.jobs)}"),
            ("live", f"{sight.live:,}"),
            ("faults", f"{sight.faults:,}{_of(self._goal.faults)}, {sight.kinds} kinds"),
        ]
        self._stage.show(Scene(heading="", rows=[], facts=[facts], notes=["", *(f"  {escape(line)}" for line in self._latest)]))


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="tenure-chaos-"))
    else:
        if out.exists() and any(out.iterdir()):
            raise click.UsageError(f"{out} is not empty: a ledger needs a folder of its own")
        out.mkdir(parents=True, exist_ok=True)
        folder = out.absolute()
    # As root the server runs under another account, which must be able to pass.
    folder.chmod(0o711)
    logging.getLogger("tenure").setLevel(logging.ERROR)
    yield folder


def _of(goal: float) -> str:
    return f" of {goal:,.0f}" if goal else ""


def _tell(stage: Stage, judged: Judged, kept: Path | None, *, as_json: bool) -> None:
    outcome, verdict = judged.outcome, judged.verdict
    if as_json:
        emit(
            {
                **asdict(outcome),
                "verdict": verdict.as_json(),
                "ledger": str(kept) if kept else None,
            }
        )
        return
    stage.quote(["", *(escape(line) for line in verdict.as_text().splitlines())])
    for words in (
        *outcome.unexpected_exits,
        *(f"a client received an error of an undocumented type: {error}" for error in outcome.unexpected_errors),
    ):
        stage.quote([f"[bold red]{escape(words)}[/]"])
    for name, why in outcome.unavailable.items():
        stage.quote([f"not available: {name} ({why})"])
    if kept:
        stage.quote([f"the ledger is in {kept}: `tenure chaos check {kept}`"])
