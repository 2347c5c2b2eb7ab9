"""Runs the guardian without the rest of Tenure: it runs as long as the server does, and should use little memory.

A script: `python -I -S run_guardian.py HOME`. It needs only the standard library.
"""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    # An empty package instead of the real one, whose __init__ would import the driver and all packages.
    bare = ModuleType("tenure")
    bare.__path__ = [str(Path(__file__).parent.parent)]
    sys.modules["tenure"] = bare
    import_module("tenure.embedded.guardian").main(Path(sys.argv[1]))
