"""Health: Tenure's own schema, tables, indexes and partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from tenure.model.findings import Finding, counted, some

MANY_DEAD = 100_000
MOST_UNPLACED = 1000  # finished jobs that the statement counts at most
DAYS_AHEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    version: int | None = None
    needed: int | None = None
    pending_pre: Sequence[str] = ()
    pending_post: Sequence[str] = ()
    old_workers: int = 0
    """Live workers that still need what the pending post steps remove."""

    @property
    def is_old(self) -> bool:
        return bool(self.pending_pre)

    def findings(self) -> Iterator[Finding]:
        if self.is_old:
            yield Finding(
                "old_schema",
                f"the schema is at version {self.version or 0}, but this version of Tenure needs {self.needed}",
                "run `tenure migrate`, then `tenure doctor` again: nothing else was checked",
            )
        elif self.pending_post and not self.old_workers:
            yield Finding(
                "post_pending",
                f"the last upgrade is not finished: {some(list(self.pending_post))} pending, and no old worker is alive",
                "run `tenure migrate --phase post`",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    live: int = 0
    dead: int = 0
    autovacuum: bool = True
    unlogged: bool = False
    publications: Sequence[str] = ()
    """Publications of its updates and deletes, for which it has no replica identity."""

    def findings(self) -> Iterator[Finding]:
        if self.unlogged:
            yield Finding(
                "unlogged",
                f"{self.name} is UNLOGGED: a crash of the server empties it, and replicas do not have it",
                f"run: alter table {self.name} set logged",
            )
        if self.publications:
            published = some(list(self.publications))
            yield Finding(
                "replica_identity",
                f"{self.name} has no replica identity, so publication {published} makes its updates and deletes fail",
                f"take the schema out of the publication, or run: alter table {self.name} replica identity full",
            )
        if not self.autovacuum:
            yield Finding(
                "autovacuum_off",
                f"autovacuum is off for {self.name}, so it grows and becomes slow",
                f"run: alter table {self.name} reset (autovacuum_enabled)",
            )
        if self.dead > MANY_DEAD and self.dead > 5 * self.live:
            yield Finding(
                "dead_rows",
                f"{self.name} has {self.dead:,} dead rows and {self.live:,} live ones: autovacuum does not keep up",
                f"look for old transactions, then run: vacuum {self.name}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    missing: Sequence[str] = ()
    """As index on table."""
    invalid: Sequence[str] = ()
    duplicates: Sequence[tuple[str, ...]] = ()
    """Indexes that differ only in their names."""

    def findings(self) -> Iterator[Finding]:
        if self.missing:
            yield Finding(
                "missing_index",
                f"indexes of Tenure are missing: {some(list(self.missing))}; statements scan whole tables without them",
                "create them again as `tenure sql` prints them",
            )
        if self.invalid:
            yield Finding(
                "invalid_index",
                f"indexes are not valid, so they slow down writes and serve no reads: {some(list(self.invalid))}",
                "run `reindex index concurrently` for each, or drop those that are not Tenure's",
            )
        for names in self.duplicates:
            yield Finding(
                "duplicate_index",
                f"indexes {' and '.join(names)} are the same: every write maintains both",
                "drop the one that is not Tenure's",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    days_ahead: int = 7
    holes: Sequence[date] = ()
    """Days from today on without a partition, before the last one that has one."""
    unplaced: int = 0
    """Finished jobs outside of all partitions."""

    def findings(self) -> Iterator[Finding]:
        if self.holes:
            yield Finding(
                "partition_hole",
                f"history has no partition for {some([day.isoformat() for day in self.holes])}",
                "see `tenure leaders` for why the cleaner does not make it, and whether the schema's owner may create tables",
            )
        elif self.days_ahead < DAYS_AHEAD:
            yield Finding(
                "partitions",
                f"history has partitions for {max(self.days_ahead, 0)} days ahead: the cleaner should make 7",
                "see `tenure leaders`, and whether the schema's owner may create tables",
            )
        if self.unplaced:
            yield Finding(
                "unplaced",
                f"{counted(self.unplaced, capped=self.unplaced >= MOST_UNPLACED)} in history_default: "
                "their day had no partition when they finished",
                "see `tenure leaders`: the cleaner moves them",
            )
