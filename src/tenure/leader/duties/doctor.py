"""Checks once a minute for conditions that slow down queues, and logs each one once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from tenure.leader.duties.duty import RoundResult
from tenure.store import leases
from tenure.store.health import probe
from tenure.store.leases import Term
from tenure.store.link import Link

log = logging.getLogger("tenure")


class Doctor:
    name = "doctor"
    wakes_on = ()
    divisible = False
    every = 60.0

    def __init__(self, not_delivering: Callable[[], bool]) -> None:
        self._not_delivering = not_delivering
        self._known: set[tuple[str, str]] = set()
        """Code and subject of the findings of the last round."""

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        if not await link.fetch(leases.check(term)):
            return RoundResult(holds=False)
        found = replace(await probe(link.fetch), not_delivering=self._not_delivering()).findings
        for finding in found:
            if (finding.code, finding.about) not in self._known:
                level = logging.WARNING if finding.severity == "problem" else logging.INFO
                facts = {"code": finding.code, "finding": finding.text, "way_out": finding.way_out}
                # The text is in the message, too: loggers without a format of ours would print nothing of the fields.
                log.log(level, "doctor: %s", finding, extra=facts)
        self._known = {(finding.code, finding.about) for finding in found}
        return RoundResult(holds=True, touched=len(found), rest=self.every, findings=found)
