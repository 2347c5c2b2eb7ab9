from __future__ import annotations

import pytest

from tests.testing import shop


@pytest.fixture(scope="session")
def tenure_server(server_dsn):
    return server_dsn


@pytest.fixture
def tenure_app_object():
    shop.DONE.clear()
    return shop.app
