from django.db import transaction
from django.http import JsonResponse

from orders.jobs import ship
from orders.models import Order


@transaction.atomic
def create(request):
    order = Order.objects.create(label="an order")
    handle = ship.enqueue_sync(order.pk)  # exists when the transaction commits
    return JsonResponse({"order": order.pk, "job": str(handle.id)})


@transaction.atomic
def create_and_refuse(request):
    response = create(request)
    transaction.set_rollback(True)  # neither the order nor the job remains
    return response


@transaction.atomic
def create_in_parts(request):
    order = Order.objects.create(label="kept")
    kept = ship.enqueue_sync(order.pk)
    with transaction.atomic():
        undone = ship.enqueue_sync(order.pk)
        transaction.set_rollback(True)  # only the inner block
    return JsonResponse({"order": order.pk, "job": str(kept.id), "undone": str(undone.id)})


async def create_async(request):
    order = await Order.objects.acreate(label="async")
    handle = await ship.enqueue(order.pk)
    return JsonResponse({"order": order.pk, "job": str(handle.id)})
