import time

from django.db import connection, transaction

from mails.jobs import send_mail
from orders.models import Order
from tenure import Context, Retry
from tenure.integrations.django import app

AT_ONCE = Retry(max_attempts=10, backoff="fixed", initial="1ms", jitter=False)


@app.job
def ship(order_id: int) -> str:
    Order.objects.filter(pk=order_id).update(state="shipped")
    with transaction.atomic():
        send_mail.enqueue_sync(order_id)
    return Order.objects.get(pk=order_id).state


@app.job(retry=AT_ONCE)
def ship_once(ctx: Context, label: str) -> int:
    with ctx.transaction():
        order = Order.objects.create(label=label)
        if ctx.attempt == 1:
            raise ValueError("not yet")
    return order.pk


@app.job(retry=AT_ONCE)
def ship_once_using(ctx: Context, label: str) -> int:
    with ctx.transaction(using="default"):
        return Order.objects.create(label=label).pk


@app.job(max_attempts=1)
def leave_block_open() -> None:
    transaction.atomic().__enter__()
    Order.objects.create(label="left open")


@app.job(max_attempts=1)
def leave_autocommit_off() -> None:
    connection.set_autocommit(False)
    Order.objects.create(label="left open")


@app.job(max_attempts=1)
def create(label: str) -> int:
    return Order.objects.create(label=label).pk


@app.job(max_attempts=1)
async def acreate(label: str) -> int:
    return (await Order.objects.acreate(label=label)).pk


@app.job(retry=AT_ONCE, queue="cut")
def write(ctx: Context, number: int) -> int:
    """In two statements, with time between them for a connection to be lost."""
    order = Order.objects.create(label=f"{number}")
    time.sleep(0.03)
    Order.objects.filter(pk=order.pk).update(state=f"attempt {ctx.attempt}")
    return connection.connection.info.backend_pid


@app.job(retry=AT_ONCE, queue="cut", run_in="process")
def write_in_process(ctx: Context, number: int) -> int:
    return write(ctx, number)
