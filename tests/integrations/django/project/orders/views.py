from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import JsonResponse

from orders.jobs import ship
from orders.models import Order


@transaction.atomic
def create(request):
    order = Order.objects.create(label=request.GET["label"])
    handle = ship.enqueue_sync(order.pk)
    if "fail" in request.GET:
        transaction.set_rollback(True)
    return JsonResponse({"order": order.pk, "job": str(handle.id)})


async def acreate(request):
    order = await Order.objects.acreate(label=request.GET["label"])
    handle = await ship.enqueue(order.pk)
    count = await sync_to_async(Order.objects.count)()
    return JsonResponse({"order": order.pk, "job": str(handle.id), "count": count})
