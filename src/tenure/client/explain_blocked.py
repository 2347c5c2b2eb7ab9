"""Why a job is blocked: the chains that it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.client.facts import ExplainFacts, Reason
from tenure.model.states import State
from tenure.store.obstacles import Blocked, MissingChain


def blocked_by(facts: ExplainFacts) -> list[Reason]:
    """The chains that are missing, and whether a process unblocks the job when they end."""
    blocked = facts.blocked
    if blocked is not None and blocked.open:
        found = [_open(blocked), *(_missing(blocked) if blocked.missing else ())]
    elif blocked is None or not blocked.missing:
        found = [Reason("blocked", "all chains that it waits for have ended; it is about to become pending")]
    else:
        found = list(_missing(blocked))
    if not facts.resolver:
        text = "no process unblocks jobs: the resolver duty has no holder; start a worker, which takes it over"
        found.append(Reason("no_resolver", text))
    return found


def _open(blocked: Blocked) -> Reason:
    text = (
        f"the group is open: it has {blocked.total} members, and app.map() is still adding some, or was interrupted; "
        "in that case repeat the call with the same key= and items, or cancel the group"
    )
    return Reason("open_group", text)


def _missing(blocked: Blocked) -> Iterator[Reason]:
    ended = blocked.total - (blocked.missing or 0)
    named = ", ".join(_named(chain) for chain in blocked.chains)
    more = (blocked.missing or 0) - len(blocked.chains)
    others = f" and {more} more" if more > 0 else ""
    yield Reason(
        "blocked", f"it waits for {_chains(blocked.missing or 0)} ({ended} of {blocked.total} have ended): {named}{others}"
    )
    if any(chain.state == State.DEAD_LETTER for chain in blocked.chains) and blocked.on_failure == "wait":
        text = (
            "a chain that it waits for is a dead letter; it waits until that is replayed and completes, and is canceled when the "
            "dead letter is removed after its retention: replay it, or cancel this job"
        )
        yield Reason("blocker_failed", text)


def _named(chain: MissingChain) -> str:
    link = f", now job {chain.job_id}" if chain.job_id not in (None, chain.chain_id) else ""
    return f"{chain.chain_id} ({chain.kind or 'unknown kind'}, {chain.state or 'unknown state'}{link})"


def _chains(count: int) -> str:
    return "1 chain" if count == 1 else f"{count} chains"
