"""The measurement beside peers: each step by all of them, one after the other, so that noise meets all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from benchmarks.figures import Figures
from benchmarks.noise import Noise, StepNoise
from benchmarks.peers.contestant import Contestant
from benchmarks.peers.environments import NotAvailableError, python_of
from benchmarks.peers.protocol import Described
from benchmarks.peers.registry import BARE, TENURE, Candidate
from benchmarks.peers.scripts import PeerFailedError, Script
from benchmarks.peers.sizes import PeerSizes
from benchmarks.progress import Steps
from benchmarks.server import Server

STEPS: tuple[tuple[str, Callable[[Contestant], None]], ...] = (
    ("enqueue one by one", Contestant.enqueue_single),
    ("bulk enqueue, new tables", lambda contestant: contestant.enqueue_bulk("bulk_new")),
    ("drain, one process", lambda contestant: contestant.drain(1)),
    ("bulk enqueue, used tables", lambda contestant: contestant.enqueue_bulk("bulk")),
    ("drain, two processes", lambda contestant: contestant.drain(2)),
    ("wake-up", Contestant.wake_up),
    ("steady", Contestant.steady),
)


@dataclass(frozen=True)
class Participant:
    name: str
    described: Described


@dataclass
class Comparison:
    server: Server
    sizes: PeerSizes
    candidates: Sequence[Candidate]
    figures: Figures = field(default_factory=Figures)
    participants: list[Participant] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Peers without figures, or without all of them, and the reason."""
    noise: list[StepNoise] = field(default_factory=list)

    def run(self) -> None:
        contestants = list(self._contestants())
        with Steps(self.sizes.rounds * len(contestants) * (1 + len(STEPS))).shown() as progress:
            for number in range(self.sizes.rounds):
                # Each begins once, so that none always comes after the same neighbour's disturbance.
                turn = number % len(contestants)
                self._round(number + 1, contestants[turn:] + contestants[:turn], progress)

    def _contestants(self) -> Iterator[Contestant]:
        for candidate in (TENURE, BARE, *self.candidates):
            try:
                script = Script(candidate, python_of(candidate))
                described = script.describe()
            except (NotAvailableError, PeerFailedError) as error:
                self.missing[candidate.name] = str(error)
                continue
            self.participants.append(Participant(candidate.name, described))
            yield Contestant(self.server, script, described, self.sizes, self.figures)

    def _round(self, number: int, contestants: list[Contestant], progress: Steps) -> None:
        with ExitStack() as databases:
            for contestant in contestants:
                progress.begin(f"round {number}: {contestant.name}: prepare")
                self._try(contestant, partial(databases.enter_context, contestant.in_new_database()))
            for name, step in STEPS:
                for contestant in contestants:
                    progress.begin(f"round {number}: {contestant.name}: {name}")
                    noise = Noise(self.server)
                    self._try(contestant, partial(step, contestant))
                    self.noise.append(noise.of_step(f"{contestant.name}: {name}"))

    def _try(self, contestant: Contestant, step: Callable[[], None]) -> None:
        """A peer that fails takes no further part. A failure of Tenure is an error."""
        if contestant.name in self.missing:
            return
        try:
            step()
        except PeerFailedError as error:
            if contestant.name == TENURE.name:
                raise
            self.missing[contestant.name] = str(error)
