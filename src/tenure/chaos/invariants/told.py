from __future__ import annotations

from typing import Any

from tenure.chaos.invariants.case import Case, Rule
from tenure.chaos.invariants.lives import Life
from tenure.chaos.ledger import Call, Final, Move
from tenure.chaos.verdict import Invariant
from tenure.model.states import FINISHED, State

FINISHED_STATES = frozenset(map(str, FINISHED))


class Told(Rule):
    invariant = Invariant("I15", "what clients were told is true", "results that they saw, and that a job is canceled or deleted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._outputs: dict[str, Any] = {}
        """Of jobs about which somebody was told something; as they stood at the end or, of those that went, before."""

    def settled(self, _life: Life, move: Move) -> None:
        if move.job in self.case.asked.about:
            self._outputs[move.job] = move.output

    amended = settled

    def stood(self, _life: Life | None, final: Final) -> None:
        if final.job in self.case.asked.about:
            self._outputs[final.job] = final.output

    def end(self) -> None:
        for job, calls in self.case.asked.about.items():
            life = self.case.lives.get(job)
            if life is not None:
                for call in calls:
                    self._judge(life, call)

    def _judge(self, life: Life, call: Call) -> None:
        if call.answer != "ok" or self.case.lost.touch(call.began, call.ended):
            return
        if call.verb == "result" and isinstance(call.told, list | tuple):
            self._judge_result(life, *call.told)
        elif call.verb == "cancel" and call.told and life.outcome != State.CANCELED:
            self.breach(f"was said to be canceled, but is {life.outcome or life.state}", job=life.job)
        elif call.verb == "delete" and call.told and not life.gone:
            self.breach(f"was said to be deleted, but is there as {life.state}", job=life.job)

    def _judge_result(self, life: Life, state: str, output: Any) -> None:
        if state == State.DEAD_LETTER:
            if not life.was_dead:
                self.breach("was seen as dead_letter, which it never was", job=life.job)
        elif state in FINISHED_STATES:
            if state != life.outcome:
                self.breach(f"was seen as {state}, but is {life.outcome or life.state}", job=life.job)
            elif output != self._outputs.get(life.job):
                self.breach(f"was seen with output {output}, but has {self._outputs.get(life.job)}", job=life.job)
