"""What a moved clock does to the handlers of a campaign."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tenure.chaos.faults.clocks import OFFSETS, faketime, moved_clock

LIBRARY = faketime()


@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is missing: apt-get install libfaketime")
@pytest.mark.parametrize("offset", OFFSETS)
def test_handlers_can_block_although_the_clock_was_moved(offset):
    program = "from tenure.chaos.jobs import block; block(0.01)"
    assert LIBRARY is not None
    subprocess.run([sys.executable, "-c", program], env=os.environ | moved_clock(LIBRARY, offset), check=True, timeout=60)
