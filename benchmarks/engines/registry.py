"""Which engines are measured. Versions are pinned, so that figures of two runs can be compared."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.registry import Candidate


@dataclass(frozen=True)
class Engine(Candidate):
    @property
    def module(self) -> str:
        return f"benchmarks.engines.{self.name}_engine"


TENURE = Engine("tenure")

ENGINES = (
    Engine("bare"),
    Engine("dbos", ("dbos==3.3.0", "uvloop")),
    Engine("absurd", ("absurd-sdk==0.5.1", "absurdctl==0.5.1", "uvloop")),
)
