"""Looks now and then for what slows a queue before anybody notices, and logs it once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from tenure.leader.duties.duty import Report
from tenure.store import leases
from tenure.store.health import probe
from tenure.store.leases import Term
from tenure.store.link import Link

log = logging.getLogger("tenure")


class Doctor:
    name = "doctor"
    hears = ()
    divisible = False
    every = 60.0

    def __init__(self, deaf: Callable[[], bool]) -> None:
        self._deaf = deaf
        self._told: set[tuple[str, str]] = set()
        """Code and subject of what was found in the last round."""

    async def run_once(self, link: Link, term: Term) -> Report:
        if not await link.fetch(leases.check(term)):
            return Report(holds=False)
        found = replace(await probe(link.fetch), deaf=self._deaf()).findings
        for finding in found:
            if (finding.code, finding.about) not in self._told:
                level = logging.WARNING if finding.severity == "problem" else logging.INFO
                facts = {"code": finding.code, "finding": finding.text, "way_out": finding.way_out}
                log.log(level, "doctor: %s", finding.code, extra=facts)
        self._told = {(finding.code, finding.about) for finding in found}
        lines = [f"{finding.code}: {finding}" for finding in found]
        return Report(holds=True, touched=len(found), rest=self.every, findings=lines)
