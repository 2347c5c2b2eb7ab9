"""The command line. A command's module is imported when the command runs, so that `tenure --help` is fast."""

from tenure.cli.main import main

__all__ = ["main"]
