"""The measurement of workflow engines side by side, in rounds, and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.engines.registry import TENURE, Engine
from benchmarks.figures import Figures
from benchmarks.machine import Machine
from benchmarks.noise import Noise, StepNoise
from benchmarks.peers.contestant import url
from benchmarks.peers.environments import NotAvailableError, python_of
from benchmarks.peers.rows import Aim
from benchmarks.peers.scripts import PeerFailedError, Script
from benchmarks.report import aim, disturbed, noise_as_json, number
from benchmarks.rows import Target
from benchmarks.server import Server
from tenure.chaos.summary import table

TITLE = "Workflow engines: medians of {} round(s); in brackets: Tenure's figure divided by this one"
ROWS = {"steps": "steps of one workflow, one by one (steps/s)", "starts": "workflows of one step (workflows/s)"}

AIMS = (
    Aim("steps", "dbos", Target(at_least=5, of_ratio=True)),
    Aim("steps", "absurd", Target(at_least=3, of_ratio=True)),
    Aim("starts", "dbos", Target(at_least=5, of_ratio=True)),
)


@dataclass(frozen=True, kw_only=True)
class EngineSizes:
    rounds: int = 3
    steps: int = 3_000
    starts: int = 3_000


QUICK = EngineSizes(rounds=1, steps=300, starts=300)


@dataclass
class EngineComparison:
    server: Server
    sizes: EngineSizes
    engines: Sequence[Engine]
    figures: Figures = field(default_factory=Figures)
    settings: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Engines without figures, and the reason."""
    noise: list[StepNoise] = field(default_factory=list)

    def run(self) -> None:
        scripts = [script for engine in (TENURE, *self.engines) if (script := self._script(engine)) is not None]
        for number_ in range(self.sizes.rounds):
            # Each begins once, so that none always comes after the same neighbour's disturbance.
            turn = number_ % len(scripts)
            for script in scripts[turn:] + scripts[:turn]:
                self._measure(script)

    @property
    def names(self) -> list[str]:
        return [name for name in self.settings if name not in self.missing]

    def show(self, console: Console, machine: Machine) -> None:
        shown = Table(title=TITLE.format(self.sizes.rounds))
        shown.add_column("")
        for name in self.names:
            shown.add_column(name, justify="right")
        for key, title in ROWS.items():
            shown.add_row(title, *(self._cell(key, name) for name in self.names))
        console.print(str(machine))
        console.print(shown)
        for name, text in self.settings.items():
            console.print(f"{name} {text}")
        for name, reason in self.missing.items():
            console.print(f"[bold red]{name}: not available:[/] {reason}")
        for wanted in AIMS:
            if wanted.peer in self.names:
                console.print(self._reach(wanted))
        console.print(disturbed(self.noise))

    def as_markdown(self, machine: Machine) -> str:
        """For a page of the docs."""
        sizes = self.sizes
        about = f"{sizes.steps:,} steps, {sizes.starts:,} workflows; {TITLE.format(sizes.rounds)}"
        rows = [(title, *(self._cell(key, name) for name in self.names)) for key, title in ROWS.items()]
        lines = [f"{machine}. {about}.", "", *table(("", *self.names), rows), ""]
        lines += [f"- {name} {text}" for name, text in self.settings.items() if name not in self.missing]
        lines += [f"- {name}: not available: {reason}" for name, reason in self.missing.items()]
        return "\n".join(lines)

    def as_json(self, machine: Machine) -> dict[str, Any]:
        return {
            "machine": asdict(machine),
            "sizes": asdict(self.sizes),
            "engines": self.settings,
            "not_available": self.missing,
            "rows": [
                {"key": key, "engine": name, "figure": self.figures.median(f"{name} {key}"), "ratio": self._ratio(key, name)}
                for key in ROWS
                for name in self.names
            ],
            "noise": noise_as_json(self.noise),
        }

    def _script(self, engine: Engine) -> Script | None:
        try:
            script = Script(engine, python_of(engine))
            described = script.describe()
        except (NotAvailableError, PeerFailedError) as error:
            self.missing[engine.name] = str(error)
            return None
        self.settings[engine.name] = f"{described.version}: {described.settings}"
        return script

    def _measure(self, script: Script) -> None:
        """An engine that fails takes no further part. A failure of Tenure is an error."""
        name = script.candidate.name
        if name in self.missing:
            return
        try:
            with self.server.bare_database() as dsn:
                script.prepare(url(dsn))
                for key in ROWS:
                    self.server.checkpoint()
                    noise = Noise(self.server)
                    timed = script.enqueue(key, url(dsn), getattr(self.sizes, key))
                    self.noise.append(noise.of_step(f"{name}: {key}"))
                    self.figures.add(f"{name} {key}", timed.timed / timed.seconds)
        except PeerFailedError as error:
            if name == TENURE.name:
                raise
            self.missing[name] = str(error)

    def _ratio(self, key: str, name: str) -> float:
        return self.figures.ratio(f"{TENURE.name} {key}", f"{name} {key}")

    def _cell(self, key: str, name: str) -> str:
        figure = number(self.figures.median(f"{name} {key}"))
        return figure if name == TENURE.name else f"{figure} ({self._ratio(key, name):.2f})"

    def _reach(self, wanted: Aim) -> str:
        ratio = self._ratio(wanted.row, wanted.peer)
        reached = "reached" if wanted.target.reached(ratio) else "[bold red]NOT reached[/]"
        return f"target: {ROWS[wanted.row]} / {wanted.peer} {aim(wanted.target)}: {ratio:.2f}, {reached}"
