"""Runs `tenure` until the process that started it ends: `python -m tenure.cli.run_with_parent PID worker ...`.

The workers of a demo or a simulation must not outlive it, not even when it is killed.
"""

from __future__ import annotations

import signal
import sys

from tenure import stop_requests
from tenure.cli.main import main
from tenure.lifeline import die_with

if __name__ == "__main__":
    stop_requests.listen(sys.argv[2:])
    die_with(int(sys.argv[1]), signal.SIGTERM)
    sys.argv[:2] = ["tenure"]
    main()
