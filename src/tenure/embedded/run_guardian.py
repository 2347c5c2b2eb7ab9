"""Runs the guardian without the rest of Tenure: it lives as long as the server does, and should weigh little.

A script: `python -I -S run_guardian.py HOME`. It needs the standard library only.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    # A bare package in place of the real one, whose __init__ would bring in the driver and all rooms.
    bare = ModuleType("tenure")
    bare.__path__ = [str(Path(__file__).parent.parent)]
    sys.modules["tenure"] = bare
    import_module("tenure.embedded.guardian").main(Path(sys.argv[1]))
