"""Time passes, and workers come and renew."""

from __future__ import annotations

from hypothesis import strategies as st

from tenure.store import workers
from tests.properties.model import Profile
from tests.properties.rules.base import PROFILES, WORKER_TTL, move
from tests.properties.rules.running import RunningRules


class TimeRules(RunningRules):
    @move(5, seconds=st.sampled_from((0.125, 1.0, 1.0, 2.0, 5.0, 10.0)), renewing=st.sampled_from((True, True, True, False)))
    def time_passes(self, seconds: float, renewing: bool) -> None:
        self.look()
        self.model.books.now += seconds
        self.store.set_clock(self.model.now)
        if renewing:
            self.renew()

    def renew(self) -> None:
        """As supervisors do, for all current workers; condemned ones are replaced."""
        ids = [seat.id for seat in self.seats]
        [(renewed, suspects, *_)] = self.run(workers.renew(ids, ["mail"], WORKER_TTL))
        self.agree((sorted(renewed), suspects), self.model.renew(ids, ["mail"], WORKER_TTL), "renewed")
        for number, seat in enumerate(self.seats):
            if seat.id not in renewed:
                self.start(number, seat.profile)

    @move(2, number=st.integers(0, 2), profile=st.sampled_from(PROFILES))
    def start(self, number: int, profile: Profile) -> None:
        """Another process in this seat; the old one is not notified."""
        self.replaced.append(self.seats[number])
        self.seats[number] = self.enter(profile)
