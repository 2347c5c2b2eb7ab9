"""Chains: I24 each has one end, and jobs that wait for it are notified."""

from __future__ import annotations

from collections import defaultdict

from tenure.chaos.invariants.kinds import CHAIN_STARTS
from tenure.chaos.invariants.rule import Rule
from tenure.chaos.ledger import FinalLink
from tenure.chaos.verdict import Invariant


class ChainsEndOnce(Rule):
    invariant = Invariant(
        "I24",
        "a chain has one end",
        "each link but the last was continued by exactly one other, and no job waits for a chain that has ended",
    )

    def at_end(self) -> None:
        by_id = {link.job: link for link in self.case.links}
        chains: dict[str, list[FinalLink]] = defaultdict(list)
        continued: dict[str, str] = {}
        for link in self.case.links:
            chains[link.chain].append(link)
            if link.next is not None:
                if link.next not in by_id:
                    self.report(f"was continued by {link.next}, which does not exist", job=link.job)
                if link.next in continued:
                    self.report(f"was continued by {link.next}, and so was {continued[link.next]}", job=link.job)
                continued[link.next] = link.job
            if link.missing is not None:
                self.report(f"still waits for {link.missing} chains", job=link.job)
        for chain, links in chains.items():
            self._check_chain(chain, links, continued)

    def _check_chain(self, chain: str, links: list[FinalLink], continued: dict[str, str]) -> None:
        tails = [link.job for link in links if link.next is None]
        if len(tails) > 1:
            self.report(f"has {len(tails)} ends: {', '.join(tails)}", job=chain)
        for link in links:
            # A first link may have been deleted by a client, and only first links are known to clients.
            if link.job != chain and link.job not in continued and link.parent not in self.case.calls.deleted:
                self.report("is a link that no other was continued by", job=link.job)
            if link.kind == CHAIN_STARTS and link.job != chain:
                self.report(f"started chain {chain}, which has another id", job=link.job)
