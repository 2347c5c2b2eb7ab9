"""Looks now and then for what slows a queue before anybody notices, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from tenure.leader.duties.duty import Report
from tenure.model.health import Probe
from tenure.store import leases, reports
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
        self._told: set[str] = set()

    async def run_once(self, link: Link, term: Term) -> Report:
        if not await link.fetch(leases.check(term)):
            return Report(holds=False)
        [row] = await link.fetch(reports.probe())
        found = replace(Probe(*row), deaf=self._deaf()).findings
        for code, text in found.items():
            if code not in self._told:
                log.warning("%s", text)
        self._told = set(found)
        return Report(holds=True, touched=len(found), rest=self.every, findings=list(found.values()))
