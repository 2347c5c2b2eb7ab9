"""Jobs that are defined without an app: for libraries, and for parts of a large application."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, Unpack

from tenure.client.job import DefinedJobs
from tenure.client.portal import Portal
from tenure.client.runtime import ClientRuntime
from tenure.decorators import JobDecorators
from tenure.model.definitions import JOB_OPTIONS, JobOptions
from tenure.model.errors import ConfigError
from tenure.model.event_bus import Events
from tenure.model.kinds import Registry
from tenure.model.names import check_name
from tenure.model.options import check_option_names


class Jobs(JobDecorators):
    """A collection of jobs: `billing = Jobs(prefix="billing")`, then `@billing.job`, and `app.include(billing)`.

    `prefix` begins the names of its jobs, `billing.charge`, so that two collections may each have a job `cleanup`. Other options
    are defaults for its jobs: `Jobs(prefix="billing", queue="billing", max_attempts=5)`.
    """

    def __init__(self, prefix: str | None = None, **options: Unpack[JobOptions]) -> None:
        known = [name for name in JOB_OPTIONS if name != "name"]
        check_option_names(options, [*known, "prefix"], what="Jobs()")
        self.prefix = None if prefix is None else check_name(prefix, what="the prefix of jobs")
        self._options: dict[str, Any] = {**options}
        self.kinds = Registry()
        self._runtime = ClientRuntime(
            self._not_included,
            Portal(),
            self._not_included,
            self.kinds,
            Events(),
            self._not_included,
            direct=self._not_included,
            client_timeout=self._not_included,
            notifies_in_transactions=self._not_included,
            default_retry=self._not_included,
            route=self._not_included,
            where=lambda: "",
        )
        self._jobs = DefinedJobs(self._runtime)

    def add_to(self, kinds: Registry, jobs: DefinedJobs, runtime: ClientRuntime) -> None:
        """Called by `app.include()`. Does nothing the second time. Included by another app, the jobs are enqueued by that one."""
        for name in self.kinds:
            kind = self.kinds[name]
            layers = (*self.kinds.middleware, *kind.middleware)
            if name not in kinds or kinds[name].fn is not kind.fn:
                kinds.add(replace(kind, default_retry=runtime.default_retry, route=runtime.route, middleware=layers))
            jobs.adopt(self._jobs[name], kinds[name])
        for schedule in self.kinds.declared:
            kinds.declare(schedule)
        for queue, rules in self.kinds.queue_limits.items():
            if kinds.queue_limits.setdefault(queue, rules) != rules:
                raise ConfigError(f"queue {queue!r} is limited twice: give all its limits in one limit()")

    def _job_options(self, function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
        options = {**self._options, **given}
        if self.prefix is not None:
            options["name"] = f"{self.prefix}.{given.get('name') or function.__name__}"
        return options

    def _not_included(self, *_: Any, **__: Any) -> NoReturn:
        shown = "a collection" if self.prefix is None else f"the collection {self.prefix!r}"
        raise ConfigError(f"this job belongs to {shown} that no app includes: call app.include(...) in the module of your app")

    def __repr__(self) -> str:
        return f"<Jobs {self.prefix!r}: {', '.join(self.kinds)}>"
