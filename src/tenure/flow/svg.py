"""Chains and workflows as SVG: boxes from top to bottom, with what they wait for on their left. One file, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise

from tenure.client.report.words import inline, span
from tenure.client.workflow_status import StepStatus, WorkflowStatus
from tenure.flow.chain_status import Blocker, Chain, ChainLink
from tenure.flow.drawing import MOST_SHOWN

WIDTH, HEIGHT, GAP, MARGIN = 280, 46, 18, 12
INDENT = 24
"""Pixels by which the steps of a task are shifted."""

LONGEST = 38
"""Characters of a line in a box."""

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2937 }
  .more { font-size: 11px; fill: #6b7280 }
  rect { fill: #f3f4f6; stroke: #9ca3af; rx: 6 }
  .completed rect, .done rect { fill: #d9f2e0; stroke: #2f855a }
  .failed rect, .dead_letter rect { fill: #fde2e2; stroke: #c53030 }
  .running rect { fill: #dbeafe; stroke: #2563eb }
  .open rect, .retry rect, .waiting rect, .blocked rect { fill: #fef3c7; stroke: #b45309 }
  path { fill: none; stroke: #6b7280; marker-end: url(#tip) }
  .dashed { stroke-dasharray: 4 3 }
"""


_TIP = """  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
    <path d="M 0 0 L 8 4 L 0 8 z" style="fill: #6b7280; stroke: none; marker-end: none"/>
  </marker></defs>"""


@dataclass(frozen=True, slots=True)
class Box:
    title: str
    more: str
    state: str
    x: int
    y: int

    def lines(self) -> Iterator[str]:
        yield f'  <g class="{escape(self.state)}" transform="translate({self.x} {self.y})">'
        yield f'    <rect width="{WIDTH}" height="{HEIGHT}"/>'
        yield f'    <text x="10" y="19">{_text(self.title)}</text>'
        yield f'    <text x="10" y="36" class="more">{_text(self.more)}</text>'
        yield "  </g>"


@dataclass(frozen=True, slots=True)
class Arrow:
    """From the lower edge of a box to the upper edge of the next one; from the side of a box if it is `dashed`."""

    start: Box
    end: Box
    dashed: bool = False

    def line(self) -> str:
        a, b = self.start, self.end
        if self.dashed:
            return f'  <path class="dashed" d="M {a.x + WIDTH} {a.y + HEIGHT // 2} L {b.x - 3} {b.y + HEIGHT // 2}"/>'
        return f'  <path d="M {a.x + INDENT} {a.y + HEIGHT} L {b.x + INDENT} {b.y - 3}"/>'


def chain_svg(chain: Chain) -> str:
    """The links, and the chains that they waited for."""
    column = MARGIN + (WIDTH + 3 * GAP if any(link.blockers for link in chain.links) else 0)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    before: Box | None = None
    y = MARGIN
    for link in chain.links:
        here = Box(f"{link.number}  {link.job.kind}", _of_link(link), link.job.state.value, column, y)
        sources = [_blocker_box(blocker, y + row * (HEIGHT + GAP)) for row, blocker in enumerate(link.blockers[:MOST_SHOWN])]
        arrows += [Arrow(source, here, dashed=True) for source in sources]
        arrows += [] if before is None else [Arrow(before, here)]
        boxes += [here, *sources]
        before = here
        y += max(1, len(sources)) * (HEIGHT + GAP)
    return _document(f"chain {chain.id}, {chain.state.value}", boxes, arrows)


def workflow_svg(status: WorkflowStatus) -> str:
    """The steps in the order in which they were recorded. Those of tasks are shifted to the right."""
    job = status.job
    boxes = [Box(job.kind, str(job.id), "start", MARGIN, MARGIN)]
    for number, step in enumerate(status.steps, 1):
        *tasks, name = step.name.split("/")
        depth = len(tasks) if all(task.isdigit() for task in tasks) else 0
        boxes.append(
            Box(
                name if depth else step.name,
                _of_step(step),
                step.state,
                MARGIN + depth * INDENT,
                MARGIN + number * (HEIGHT + GAP),
            )
        )
    boxes.append(Box(job.state.value, status.held or "", job.state.value, MARGIN, MARGIN + len(boxes) * (HEIGHT + GAP)))
    arrows = [Arrow(one, other) for one, other in pairwise(boxes)]
    return _document(f"workflow {job.kind} {job.id}, {job.state.value}", boxes, arrows)


def _blocker_box(blocker: Blocker, y: int) -> Box:
    state = blocker.state or "not ended"
    return Box(blocker.kind or "chain", f"{state}  {blocker.chain_id}", state.replace(" ", "_"), MARGIN, y)


def _of_link(link: ChainLink) -> str:
    return f"{link.job.state.value}{_took(link.job.started_at, link.job.finished_at)}  {link.job.id}"


def _of_step(step: StepStatus) -> str:
    tries = f", {step.attempts} tries" if step.attempts > 1 else ""
    return f"{step.what}, {step.state}{tries}{_took(step.started_at, step.ended_at)}"


def _took(began: datetime | None, ended: datetime | None) -> str:
    return "" if began is None or ended is None else f", {span(ended - began)}"


def _text(text: str) -> str:
    """Untrusted: names of steps and jobs."""
    line = inline(text)
    return escape(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


def _document(title: str, boxes: Iterable[Box], arrows: Iterable[Arrow]) -> str:
    placed = list(boxes)
    width = max((box.x for box in placed), default=0) + WIDTH + MARGIN
    height = max((box.y for box in placed), default=0) + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"  <title>{escape(inline(title))}</title>",
        f"  <style>{_STYLE}  </style>",
        _TIP,
        *(arrow.line() for arrow in arrows),
        *(line for box in placed for line in box.lines()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
