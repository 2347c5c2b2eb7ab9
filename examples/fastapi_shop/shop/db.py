"""The tables of the shop, and its sessions."""

import os
from collections.abc import AsyncIterator, Iterator
from datetime import datetime

from sqlalchemy import ForeignKey, create_engine, func
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

URL = os.environ.get("DATABASE_URL", "postgresql://localhost/shop").replace("postgresql:", "postgresql+psycopg:", 1)

engine = create_async_engine(URL)
async_sessions = async_sessionmaker(engine, expire_on_commit=False)
sync_engine = create_engine(URL)
sync_sessions = sessionmaker(sync_engine, expire_on_commit=False)


async def get_async_session() -> AsyncIterator[AsyncSession]:
    async with async_sessions() as session:
        yield session


def get_session() -> Iterator[Session]:
    with sync_sessions() as session:
        yield session


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    cents: Mapped[int]
    state: Mapped[str] = mapped_column(default="new")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class LedgerEntry(Base):
    __tablename__ = "ledger"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"))
    fence: Mapped[int]
