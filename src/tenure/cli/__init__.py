"""The command line. Commands are loaded when they are called, so that `tenure --help` answers at once."""

from tenure.cli.main import main

__all__ = ["main"]
