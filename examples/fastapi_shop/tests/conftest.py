import pytest
import pytest_asyncio
from httpx2 import ASGITransport, AsyncClient
from shop import db
from shop.api import api
from sqlalchemy.pool import NullPool


@pytest.fixture(autouse=True)
def database(tenure_app, tenure_dsn):
    """The shop's tables are in the same database as the jobs, and as empty."""
    engine = db.create_engine(tenure_dsn.replace("postgresql:", "postgresql+psycopg:", 1))
    db.async_sessions.configure(bind=db.create_async_engine(engine.url, poolclass=NullPool))
    db.sync_sessions.configure(bind=engine)
    db.Base.metadata.drop_all(engine)
    db.Base.metadata.create_all(engine)
    yield
    engine.dispose()


@pytest_asyncio.fixture
async def http():
    async with AsyncClient(transport=ASGITransport(api), base_url="http://shop") as client:
        yield client
