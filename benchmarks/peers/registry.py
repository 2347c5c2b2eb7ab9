"""Who is measured. Versions are pinned, so that figures of two runs can be compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    name: str
    requirements: tuple[str, ...] = ()
    """What is installed into its virtual environment. None: it runs with the Python of the benchmark."""
    share: float = 1.0
    """Of the jobs that the others drain: a slow queue would take minutes."""

    @property
    def module(self) -> str:
        return f"benchmarks.peers.{self.name}_peer"


TENURE = Candidate("tenure")
BARE = Candidate("bare")

PEERS = (
    Candidate("pgqueuer", ("pgqueuer[asyncpg]==1.6.0", "uvloop")),
    Candidate("awa", ("awa-pg==0.6.9", "uvloop")),
    Candidate("chancy", ("chancy==0.26.0", "psycopg[binary,pool]>=3.3", "uvloop"), share=0.2),
    Candidate("procrastinate", ("procrastinate==3.10.0", "psycopg[binary,pool]>=3.3", "uvloop"), share=0.05),
)
