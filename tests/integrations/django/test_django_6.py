"""Django 6 has a task framework and needs Python 3.12. Where this Python is older, its tests run in another environment."""

from __future__ import annotations

import os
import sys

import django
import pytest

from tests.conftest import HOME
from tests.packaging.distributions import PYTHONS, run, tracked

TESTS = "tests/integrations/django/test_tasks.py"
NEEDED = ["django>=6", "hypothesis", "pytest>=8.3", "pytest-asyncio", "pytest-timeout"]
NEWER = [path for minor, path in PYTHONS.items() if minor >= 12]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(django.VERSION >= (6,), reason="test_tasks.py runs in this environment")
@pytest.mark.skipif(not NEWER, reason="there is no Python 3.12 or newer here, which Django 6 needs: install one to test tasks")
def test_tasks_with_django_6(server_dsn, tmp_path):
    source = tracked(tmp_path / "source")
    python = str(tmp_path / "venv" / "bin" / "python")
    run([NEWER[0], "-m", "venv", str(tmp_path / "venv")], tmp_path)
    run([python, "-m", "pip", "install", "-q", str(source), *NEEDED], tmp_path)
    shared = {"TENURE_TEST_DSN": server_dsn, HOME: os.environ[HOME]}
    said = run([python, "-m", "pytest", "-rs", "-s", "-p", "no:cacheprovider", TESTS], source, **shared)
    assert "SKIPPED" not in said, said
    sys.stdout.write(said)  # with the version of Django, and how many of its own tests passed
