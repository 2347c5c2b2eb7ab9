"""A chain as text: a tree for terminals, and a graph in Mermaid's language for pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from tenure.client.report.words import gist, inline, span
from tenure.flow.chain_status import Blocker, Chain, ChainLink

MOST_SHOWN = 10
"""Blockers of a link that are shown one by one."""


def tree(chain: Chain) -> str:
    """One line for each link, with what it waited for below it."""
    lines = [f"chain {chain.id}  {chain.state.value}"]
    for link in chain.links:
        job, is_last = link.job, link is chain.links[-1]
        text = f"{link.number}  {inline(job.kind, 60)}  {job.state.value}  {job.id}{_times(link)}"
        lines.append(f"{'└' if is_last else '├'}─ {text}")
        lines += [f"{' ' if is_last else '│'}     {line}" for line in _below(link)]
    return "\n".join(lines) + "\n"


def _below(link: ChainLink) -> Iterator[str]:
    for blocker in link.blockers[:MOST_SHOWN]:
        yield f"after {blocker.chain_id}  {_outcome(blocker)}"
    if len(link.blockers) > MOST_SHOWN:
        ended = sum(blocker.ended for blocker in link.blockers)
        yield f"after {len(link.blockers) - MOST_SHOWN} more; {ended} of the first {len(link.blockers)} have ended"
    if link.job.error and link.job.state.value in ("failed", "dead_letter", "canceled"):
        yield gist(link.job.error)


def _outcome(blocker: Blocker) -> str:
    kind = f"{inline(blocker.kind, 60)}  " if blocker.kind else ""
    return f"{kind}{blocker.state or 'has not ended'}"


def _times(link: ChainLink) -> str:
    began: datetime | None = link.job.started_at
    ended = link.job.finished_at
    if began is None or ended is None:
        return ""
    return f"  {span(ended - began)}"


def mermaid(chain: Chain) -> str:
    """A flow chart: https://mermaid.js.org. Links from left to right, and the chains that they waited for."""
    lines = ["flowchart LR"]
    for link in chain.links:
        lines.append(f'    {_node(link.job.id)}["{_label(link.job.kind)}<br/>{link.job.state.value}"]:::{link.job.state.value}')
        for blocker in link.blockers[:MOST_SHOWN]:
            lines.append(
                f'    {_node(blocker.chain_id)}(["{_label(blocker.kind or "chain")}<br/>{blocker.state or "not ended"}"])'
            )
            lines.append(f"    {_node(blocker.chain_id)} -.-> {_node(link.job.id)}")
    ids = [_node(link.job.id) for link in chain.links]
    lines += [f"    {one} --> {other}" for one, other in pairwise(ids)]
    lines += [
        f"    classDef {state} {style}"
        for state, style in _STYLES.items()
        if any(link.job.state.value == state for link in chain.links)
    ]
    return "\n".join(lines) + "\n"


_STYLES = {
    "completed": "fill:#d9f2e0,stroke:#2f855a",
    "failed": "fill:#fde2e2,stroke:#c53030",
    "dead_letter": "fill:#fde2e2,stroke:#c53030",
    "canceled": "fill:#eeeeee,stroke:#777777",
    "running": "fill:#dbeafe,stroke:#2563eb",
}


def _node(job_id: UUID) -> str:
    return "j" + job_id.hex


def _label(kind: str) -> str:
    """Without what has a meaning in Mermaid."""
    return "".join(letter if letter.isalnum() or letter in " _-.:/" else "_" for letter in inline(kind, 60))
