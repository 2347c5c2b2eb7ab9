"""All duties. To add one, write its class in a module of this package and add a line to `DUTIES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tenure.leader.duties.cleaner import Cleaner
from tenure.leader.duties.cron import Cron
from tenure.leader.duties.doctor import Doctor
from tenure.leader.duties.duty import Duty
from tenure.leader.duties.reaper import Contact, Reaper
from tenure.leader.duties.resolver import Resolver
from tenure.leader.duties.rollup import Rollup
from tenure.leader.duties.stager import Stager
from tenure.leader.reporting import Reporting
from tenure.leader.settings import LeaderSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyContext:
    """What duties are created from."""

    settings: LeaderSettings
    reporting: Reporting
    contact: Contact
    not_delivering: Callable[[], bool]
    """Whether this process does not receive notifications."""


DUTIES: Mapping[str, Callable[[DutyContext], Duty]] = {
    Stager.name: lambda given: Stager(given.reporting),
    Reaper.name: lambda given: Reaper(given.contact, given.reporting, every=given.settings.reap_every),
    Cron.name: lambda given: Cron(given.settings.retention, given.reporting),
    Resolver.name: lambda given: Resolver(given.reporting),
    Cleaner.name: lambda given: Cleaner(
        given.settings.retention,
        given.settings.dead_letter_retention,
        keep_events=given.settings.event_retention,
        keep_audit=given.settings.audit_retention,
        every=given.settings.clean_every,
    ),
    Rollup.name: lambda _: Rollup(),
    Doctor.name: lambda given: Doctor(given.not_delivering),
}
"""By name: how each duty is created, with the settings it uses."""


def create_duties(context: DutyContext) -> list[Duty]:
    return [create(context) for create in DUTIES.values()]
