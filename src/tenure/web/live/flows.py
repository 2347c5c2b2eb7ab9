"""Chains and workflows that viewers follow: one look-up for all of them, and those that have changed are read."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Mapping
from typing import Any
from uuid import UUID

from tenure.client.json_values import to_json_value
from tenure.client.workflows import Workflows
from tenure.flow.chains import Chains
from tenure.model.errors import JobNotFound
from tenure.store import chains as chain_statements
from tenure.store import live
from tenure.store.faults import StatementTimeout
from tenure.store.query import Fetch
from tenure.web.flow_views import chain_view, workflow_view
from tenure.web.live.followed import finite
from tenure.web.live.topics import LiveTopic, Subject
from tenure.web.security.principal import LOCAL
from tenure.web.security.redaction import Redaction

LARGEST_MESSAGE = 256 * 1024  # bytes
FLOWS = frozenset({Subject.CHAIN, Subject.WORKFLOW})

Version = tuple[object, ...]


class FlowReader:
    def __init__(self, chains: Chains, workflows: Workflows, read: Fetch, redaction: Redaction) -> None:
        self._chains = chains
        self._workflows = workflows
        self._read = read
        self._redaction = redaction
        self._versions: dict[LiveTopic, Version] = {}

    def forget(self, topic: LiveTopic) -> None:
        self._versions.pop(topic, None)

    async def changed(self, topics: Collection[LiveTopic], known: Container[LiveTopic]) -> dict[LiveTopic, str]:
        """The messages of those that have changed, or that are not known yet."""
        versions = await self._look(topics)
        found = {topic: versions.get(topic, ()) for topic in topics}
        changed = [topic for topic in topics if topic not in known or self._versions.get(topic) != found[topic]]
        messages = {topic: await self._message(topic) for topic in changed}
        # Not before all of them are read: after an outage in between, none has been sent.
        self._versions.update({topic: found[topic] for topic in changed})
        return messages

    async def _look(self, topics: Collection[LiveTopic]) -> Mapping[LiveTopic, Version]:
        workflows = [topic for topic in topics if topic.subject is Subject.WORKFLOW]
        chains = [topic for topic in topics if topic.subject is Subject.CHAIN]
        tails = await self._read(chain_statements.find_links([topic.job_id for topic in chains], most=1)) if chains else []
        wanted = {row.id for row in tails} | {topic.job_id for topic in workflows}
        jobs = {row.id: finite(row) for row in await self._read(live.find_versions(wanted))} if wanted else {}
        steps = await self._steps([topic.job_id for topic in workflows])
        found: dict[LiveTopic, Version] = {
            LiveTopic(Subject.CHAIN, str(row.chain_id)): (row.id, row.number, jobs.get(row.id)) for row in tails
        }
        for topic in workflows:
            found[topic] = (jobs.get(topic.job_id), steps.get(topic.job_id))
        return found

    async def _steps(self, ids: Collection[UUID]) -> dict[UUID, tuple[int, int]]:
        rows = await self._read(live.find_step_versions(ids)) if ids else []
        return {row.job_id: (row.steps, row.newest) for row in rows}

    async def _message(self, topic: LiveTopic) -> str:
        try:
            text = self._text(topic, await self._content(topic), omitted=False)
        except StatementTimeout:  # of this one: those of others must not wait for it
            return self._text(topic, None, omitted=True)
        return text if len(text.encode()) <= LARGEST_MESSAGE else self._text(topic, None, omitted=True)

    def _text(self, topic: LiveTopic, content: Any, *, omitted: bool) -> str:
        name = topic.subject.value
        message = {"type": name, "topic": str(topic), name: content, "omitted": omitted}
        return json.dumps(message, default=to_json_value, ensure_ascii=False)

    async def _content(self, topic: LiveTopic) -> Any:
        """None: there is no such chain or workflow."""
        try:
            if topic.subject is Subject.CHAIN:
                return chain_view(await self._chains.get(topic.job_id), LOCAL, self._redaction)
            return workflow_view(await self._workflows.get(topic.job_id), self._redaction)
        except JobNotFound:
            return None
