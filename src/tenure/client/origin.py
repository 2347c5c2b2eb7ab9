"""Who hands in jobs: kept with each of them, for the report."""

from __future__ import annotations

import json
import os
import socket
from functools import cache

from tenure.model.current import current_run


def origin() -> str:
    """The part of a job's JSON that says who hands it in, and on behalf of which run."""
    run = current_run.get()
    if run is None:
        return _process(os.getpid())
    auth = "" if run.auth is None else f',"auth":{run.auth}'
    return f'{_process(os.getpid())},"parent":"{run.job_id}","claim":"{run.claim_id}"{auth}'


@cache
def _process(pid: int) -> str:
    """A forked process is somebody else."""
    return ',"by":' + json.dumps(f"{socket.gethostname()}:{pid}")
