from mails.jobs import send
from orders.models import Order
from tenure import Context
from tenure.integrations.django import app


@app.job
def ship(ctx: Context, order_id: int) -> str:
    """The order, the mail and the completion of this job are one transaction."""
    with ctx.transaction():
        order = Order.objects.select_for_update().get(pk=order_id)
        order.state = "shipped"
        order.save()
        send.enqueue_sync(order_id, f"{order.label} is on its way")
    return order.state


@app.job
async def count_orders(state: str) -> int:
    return await Order.objects.filter(state=state).acount()


@app.job(run_in="process")
def summarize() -> dict[str, int]:
    """In a process of its own, where Django is set up as well."""
    return {order.label: order.pk for order in Order.objects.all()}
