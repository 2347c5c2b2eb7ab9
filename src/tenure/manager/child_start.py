"""Starts a child process: `python -m tenure.manager.child_start`.

Ctrl-C and a SIGTERM to the process group reach a child while it still imports. The supervisor decides how to stop it.
"""

import signal

from tenure import stop_requests

if __name__ == "__main__":
    stop_requests.remember_from_start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from tenure.manager.child import main

    main()
