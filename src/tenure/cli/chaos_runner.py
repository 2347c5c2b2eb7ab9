"""Runs a chaos campaign, shows its progress, and prints the verdict."""

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
from tenure.chaos.checker import check as check_ledger
from tenure.chaos.ledger import Ledger
from tenure.chaos.verdict import CheckerVerdict
from tenure.cli.live_display import Display, DisplayState, open_display
from tenure.cli.output import print_json
from tenure.manager.loops import run_loop

SEEDS = 1_000_000
LATEST_FAULTS = 6

PHASES = {
    "faults": "injecting faults",
    "drain": "no more faults; waiting until all jobs have finished",
    "export": "exporting the ledger",
}

RunCampaign = Callable[[Path, ShowProgress], Coroutine[Any, Any, CampaignOutcome]]


@dataclass(frozen=True, slots=True)
class Goal:
    """What must be reached before fault injection stops."""

    seconds: float
    jobs: int
    faults: int
    steps: int = 0

    @staticmethod
    def of(campaign: CampaignOptions) -> Goal:
        return Goal(campaign.seconds, campaign.jobs, campaign.faults, campaign.steps)


@dataclass(frozen=True, slots=True)
class ChaosResult:
    outcome: CampaignOutcome
    verdict: CheckerVerdict

    @property
    def good(self) -> bool:
        outcome = self.outcome
        return self.verdict.ok and not (outcome.unexpected_errors or outcome.unexpected_exits or outcome.unexpected_refusals)


def drawn_seed(seed: int | None) -> int:
    return SystemRandom().randrange(SEEDS) if seed is None else seed


def run_and_check(seed: int, out: Path | None, run_campaign: RunCampaign, goal: Goal, *, as_json: bool) -> ChaosResult:
    """The ledger is kept if `out` is given or if there are violations."""
    display = open_display(silent=as_json)
    with _folder(out) as folder, display:
        display.event(f"seed {seed}; repeat this plan with --seed {seed}")
        outcome = run_loop(run_campaign(folder, CampaignDisplay(display, goal).show))
        display.event("checking the ledger")
        result = ChaosResult(outcome, check_ledger(Ledger(folder)))
        kept = None if result.good and out is None else folder
        if kept is None:
            shutil.rmtree(folder)
    display.stop()
    _print_result(display, result, kept, as_json=as_json)
    return result


class CampaignDisplay:
    """Shows a running campaign: its counts, and the latest faults."""

    def __init__(self, display: Display, goal: Goal) -> None:
        self._display = display
        self._goal = goal
        self._latest: deque[str] = deque(maxlen=LATEST_FAULTS)
        self._phase = ""

    def show(self, progress: CampaignProgress) -> None:
        if progress.latest and (not self._latest or self._latest[-1] != progress.latest):
            self._latest.append(progress.latest)
        if progress.phase != self._phase:
            self._phase = progress.phase
            self._display.event(PHASES[progress.phase])
        facts = [
            ("time", f"{progress.elapsed:.0f}{_of(self._goal.seconds)} s"),
            ("jobs accepted", f"{progress.accepted:,}{_of(self._goal.jobs)}"),
            ("live", f"{progress.live:,}"),
            ("workflow steps", f"{progress.steps:,}{_of(self._goal.steps)}"),
            ("faults", f"{progress.faults:,}{_of(self._goal.faults)}, {progress.kinds} kinds"),
        ]
        self._display.update(
            DisplayState(heading="", counts=[], facts=[facts], notes=["", *(f"  {escape(line)}" for line in self._latest)])
        )


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="tenure-chaos-"))
    else:
        if out.exists() and any(out.iterdir()):
            raise click.UsageError(f"{out} is not empty: give a new or empty directory")
        out.mkdir(parents=True, exist_ok=True)
        folder = out.absolute()
    # As root, the server runs under another account, which must be able to enter.
    folder.chmod(0o711)
    logging.getLogger("tenure").setLevel(logging.ERROR)
    yield folder


def _of(goal: float) -> str:
    return f" of {goal:,.0f}" if goal else ""


def _print_result(display: Display, result: ChaosResult, kept: Path | None, *, as_json: bool) -> None:
    outcome, verdict = result.outcome, result.verdict
    if as_json:
        print_json(
            {
                **asdict(outcome),
                "verdict": verdict.as_json(),
                "ledger": str(kept) if kept else None,
            }
        )
        return
    display.print_lines(["", *(escape(line) for line in verdict.as_text().splitlines())])
    for words in (
        *outcome.unexpected_exits,
        *(f"a client received an error of an undocumented type: {error}" for error in outcome.unexpected_errors),
        *(f"PostgreSQL refused what no fault made it refuse: {error}" for error in outcome.unexpected_refusals),
    ):
        display.print_lines([f"[bold red]{escape(words)}[/]"])
    for name, why in outcome.unavailable.items():
        display.print_lines([f"fault not available: {name} ({why})"])
    if kept:
        display.print_lines([f"the ledger is kept; check it again with `tenure chaos check {kept}`"])
