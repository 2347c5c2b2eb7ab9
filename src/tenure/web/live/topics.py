"""What can be followed: `job:<id>`, `chain:<id>`, `workflow:<id>`, `queue:<name>` and `overview`. A new subject is one entry here
and its reader in the hub."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tenure.model.names import LONGEST_NAME, size_in_bytes
from tenure.web.problems import Problem
from tenure.web.security.principal import Principal

KNOWN = "use job:<id>, chain:<id>, workflow:<id>, queue:<name> or overview"


class Subject(StrEnum):
    JOB = "job"
    CHAIN = "chain"
    WORKFLOW = "workflow"
    QUEUE = "queue"
    OVERVIEW = "overview"


@dataclass(frozen=True, slots=True)
class LiveTopic:
    subject: Subject
    name: str = ""

    def __str__(self) -> str:
        return f"{self.subject.value}:{self.name}" if self.name else self.subject.value

    @property
    def job_id(self) -> UUID:
        return UUID(self.name)

    @staticmethod
    def parse(text: object) -> LiveTopic:
        """Raises a problem for text that is not a topic."""
        word, colon, name = str(text).partition(":") if isinstance(text, str) else ("", "", "")
        try:
            subject = Subject(word)
            if subject in (Subject.JOB, Subject.CHAIN, Subject.WORKFLOW):
                return LiveTopic(subject, str(UUID(name)))
        except ValueError:
            subject = None
        if subject is Subject.OVERVIEW and not colon:
            return LiveTopic(subject)
        if subject is Subject.QUEUE and name and size_in_bytes(name) <= LONGEST_NAME and "\0" not in name:
            return LiveTopic(subject, name)
        raise Problem(422, "unknown-topic", f"{str(text)[:100]!r} is not a topic: {KNOWN}")

    def check_access(self, principal: Principal) -> None:
        """Jobs of limited principals are also checked when they are read."""
        if principal.job_id is not None and (self.subject is not Subject.JOB or self.job_id != principal.job_id):
            raise Problem(403, "limited", "this token is for one job: subscribe to that one")
        if self.subject in (Subject.OVERVIEW, Subject.CHAIN, Subject.WORKFLOW):
            principal.require_whole()
        if self.subject is Subject.QUEUE and (principal.kinds is not None or not principal.sees(kind="", queue=self.name)):
            raise Problem(403, "limited", f"this token does not include queue {self.name!r}: use another one")
