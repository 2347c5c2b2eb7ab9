"""A small disk for the table of live jobs, which can be filled. Needs Linux and root, to mount a tmpfs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

SIZE = 512 << 20


class SmallDisk:
    def __init__(self, folder: Path, owner: int) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tenure-chaos", str(folder)], check=True, capture_output=True
        )
        self.tablespace = folder / "tablespace"
        self.tablespace.mkdir(mode=0o700)
        os.chown(self.tablespace, owner, -1)

    @staticmethod
    def possible() -> bool:
        return sys.platform == "linux" and os.geteuid() == 0

    def move_jobs_table(self, connection: psycopg.Connection[Any]) -> None:
        """Moves the table of live jobs and its indexes to this disk."""
        connection.execute(sql.SQL("create tablespace chaos location {}").format(sql.Literal(str(self.tablespace))))
        connection.execute("alter table tenure.jobs set tablespace chaos")
        for (index,) in connection.execute(
            "select indexrelid::regclass::text from pg_index where indrelid = 'tenure.jobs'::regclass"
        ):
            connection.execute(sql.SQL("alter index {} set tablespace chaos").format(sql.SQL(index)))

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            block = bytes(1 << 20)
            try:
                while True:
                    file.write(block)
            except OSError:
                return

    def clear(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._folder)], check=False, capture_output=True)
