"""SQLAlchemy: enqueue a job in your own transaction, and write exactly once in a handler.

Needs `pip install "sqlalchemy[asyncio]"`.
"""

import asyncio
from pathlib import Path

from sqlalchemy import func, make_url, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tenure import Context, Retry, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure(log_failed_attempt="info")  # by default a warning, with the traceback
sessions = async_sessionmaker[AsyncSession](expire_on_commit=False)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "example_orders"
    id: Mapped[int] = mapped_column(primary_key=True)


class Payment(Base):
    __tablename__ = "example_payments"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int]


@app.job(retry=Retry(initial="100ms"))
async def charge_order(ctx: Context, order_id: int) -> str:
    async with ctx.transaction(sessions) as session:  # committed with the job's completion, or not at all
        session.add(Payment(order_id=order_id))
    if ctx.attempt == 1:
        raise ConnectionError("the bank did not answer")  # the payment is rolled back
    return f"charged at attempt {ctx.attempt}"


async def main() -> None:
    await app.migrate()
    assert app.settings.dsn is not None
    engine = create_async_engine(make_url(app.settings.dsn).set(drivername="postgresql+psycopg"))
    sessions.configure(bind=engine)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)

    async with app.running():
        async with sessions() as session:
            session.add(order := Order())
            await session.flush()
            rolled_back = await charge_order.using(conn=session).enqueue(order.id)
            await session.rollback()  # neither the order nor its job exists

        async with sessions.begin() as session:
            session.add(order := Order())
            await session.flush()
            handle = await charge_order.using(conn=session).enqueue(order.id)
        charged = await handle.result(timeout="30s")  # both exist

        async with sessions() as session:
            payments = await session.scalar(select(func.count()).where(Payment.order_id == order.id))
        print(f"order {order.id} {charged}, {payments} payment")
        assert await app.client().find(rolled_back.id) is None
    await engine.dispose()
    assert (charged, payments) == ("charged at attempt 2", 1)


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
