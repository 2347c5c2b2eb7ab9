"""A schedule as text, for the message of a failed test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.interleavings.exploring import Explored, Wrong
from tests.interleavings.playing import Played, Taken


def report(start_state: str, found: Explored, simplest: Wrong) -> str:
    head = f"{len(found.wrong)} of {found.played} schedules fail, starting from “{start_state}”. The simplest:"
    return "\n".join(["", head, *_lines(simplest.played, simplest.names), simplest.why])


def _lines(played: Played, names: Sequence[str]) -> Iterator[str]:
    width = max(len(name) for name in names)
    late: list[Taken] = []
    over = 0
    for number, taken in enumerate(played.steps, start=1):
        for event in played.events[over : taken.began]:
            if any(event is one for one in late):
                yield f"      {names[event.who]:{width}}  continues{_answer(event)}"
        over = taken.began
        waits = bool(taken.waited_for)
        answer = f" ... waits for {', '.join(names[who] for who in taken.waited_for)}" if waits else _answer(taken)
        late += [taken] if waits else []
        yield f"  {number:2}. {names[taken.who]:{width}}  {taken.step.label}{answer}"
    for event in played.events[over:]:
        if any(event is one for one in late):
            yield f"      {names[event.who]:{width}}  continues{_answer(event)}"


def _answer(taken: Taken) -> str:
    return f" -> {', '.join(taken.answer or ()) or 'nothing'}"
