"""A later version of the code: a copy of this one with the migrations of a typical release, which follow the rules for them.

So the procedure of an upgrade is tested before there is a second release, and from each release to its next one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import tenure
from tenure.store.migration_files import newest_version
from tests.upgrades.code_version import CodeVersion

NEXT = newest_version() + 1

LATER_MIGRATIONS = {
    f"{NEXT:04d}_pre_weights": """
        alter table tenure.jobs add column later_weight integer not null default 1;
        create table tenure.later_weights (kind text not null primary key, weight integer not null);
    """,
    f"{NEXT + 1:04d}_pre_finished_weights": """
        alter table tenure.history add column later_weight integer;
        create index history_later_weight on only tenure.history (later_weight) where later_weight is not null;
    """,
    f"{NEXT + 2:04d}_pre_parent_index": """-- outside a transaction
        drop index concurrently if exists tenure.jobs_parent_later;
        create index concurrently jobs_parent_later on tenure.jobs (parent_id, id, later_weight) where parent_id is not null;
    """,
    f"{NEXT + 2:04d}_post_parent_index": "drop index tenure.jobs_parent;",
    f"{NEXT + 3:04d}_pre_functions": "-- Only functions change.",
}
CHANGED_FUNCTIONS = ("enqueue", "enqueue_one", "emit", "make_history")


def later_code(folder: Path) -> CodeVersion:
    source = folder / "src"
    package = shutil.copytree(Path(tenure.__file__).parent, source / "tenure", ignore=shutil.ignore_patterns("__pycache__"))
    store = package / "store"
    for label, text in LATER_MIGRATIONS.items():
        (store / "migrations" / f"{label}.sql").write_text(text, "utf-8")
    for name in CHANGED_FUNCTIONS:
        file = store / "functions" / f"{name}.sql"
        file.write_text(file.read_text("utf-8").replace("as $$\n", "as $$\n-- A later definition.\n", 1), "utf-8")
    return CodeVersion(NEXT + 3, source)
