"""Lines of the ledger as people read them."""

from __future__ import annotations

import json
from typing import Any

from tenure.chaos.ledger import Call, Effect, Fault, Final, Move, Plan, Run, Term, Tick
from tenure.chaos.verdict import moment

LONGEST = 120  # characters of an output


def of_call(call: Call, job: str | None, n: int | None) -> str:
    took = f"answered after {call.ended - call.began:.3f} s: {call.answer}"
    if call.verb != "enqueue":
        told = "" if call.told is None else f", {_short(call.told)}"
        return f"client    {call.verb} of {'it' if call.job == job else call.job}, {took}{told}"
    offers = [
        f"offer {offer.n} ({_facts(kind=offer.kind, key=offer.key)})" + _answer(call, place, job)
        for place, offer in enumerate(call.offers)
        if offer.n == n or job in call.ids[place : place + 1]
    ]
    return f"client    enqueue, {took}: {'; '.join(offers)}"


def of_move(move: Move) -> str:
    facts = _facts(
        fence=move.fence,
        claim=move.claim,
        worker=move.worker,
        attempt=f"{move.attempt}/{move.max_attempts}",
        crashes=move.crashes or None,
        position=move.position or None,
        output=move.output,
    )
    return f"{move.relation:<9} {move.was or 'new'} -> {move.state or 'gone'} (move {move.seq}; {facts})"


def of_run(run: Run) -> str:
    return f"handler   {run.what} ({_facts(fence=run.fence, attempt=run.attempt, worker=run.worker, pid=run.pid)})"


def of_fault(fault: Fault) -> str:
    facts = [fault.target, fault.detail, f"{fault.ended - fault.began:.3f} s", "" if fault.done else "not done"]
    return f"fault     {fault.kind} ({', '.join(filter(None, facts))})"


def of_term(term: Term) -> str:
    return f"leader    {term.was_holder}, term {term.was_term} -> {term.holder}, term {term.term} (change {term.seq})"


def of_plan(plan: Plan) -> str:
    if plan.since is None:
        return f"schedule  deleted (change {plan.seq})"
    facts = _facts(
        kind=plan.kind,
        cron=plan.cron,
        every=plan.every,
        overlap=plan.overlap,
        catch_up=plan.catch_up,
        paused=plan.paused or None,
        retired=plan.retired or None,
    )
    since = "new" if plan.was_since is None else moment(plan.was_since)
    return f"schedule  recorded up to: {since} -> {moment(plan.since)} (change {plan.seq}; {facts})"


def of_tick(tick: Tick) -> str:
    span = moment(tick.planned) + (f" to {moment(tick.until)}, {tick.times} times" if tick.until is not None else "")
    facts = _facts(change=tick.seq, transaction=tick.xact, job=tick.job, by=tick.by)
    return f"tick      {span}: {tick.was or 'new'} -> {tick.outcome or 'gone'} ({facts})"


def of_final(final: Final) -> str:
    facts = _facts(fence=final.fence, claim=final.claim, worker=final.worker, lease_left=final.lease_left, output=final.output)
    return f"{final.state} ({facts})"


def of_effect(effect: Effect) -> str:
    return f"a row in {effect.relation} ({_facts(n=effect.n, job=effect.job, fence=effect.fence)})"


def _answer(call: Call, place: int, job: str | None) -> str:
    if call.answer != "ok" or place >= len(call.ids):
        return ""
    return (" is it" if call.ids[place] == job else f" is job {call.ids[place]}") + (
        ", met" if any(call.existed[place : place + 1]) else ""
    )


def _facts(**facts: Any) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in facts.items() if value is not None)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
