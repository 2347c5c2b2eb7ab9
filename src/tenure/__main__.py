"""The `tenure` command, and `python -m tenure`."""

import sys

from tenure import stop_requests


def main() -> None:
    stop_requests.listen(sys.argv[1:])
    from tenure.cli import main as run  # noqa: PLC0415 - takes time, in which a signal must not be lost

    run()


if __name__ == "__main__":
    main()
