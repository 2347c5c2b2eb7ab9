"""Tasks of Django's own framework. Installed only in tests that run with Django 6."""

import time

from django.tasks import task
from orders.models import Order


@task
def pack(label, *, weight=1):
    return [Order.objects.create(label=label).pk, weight]


@task(takes_context=True, queue_name="express")
def pack_at_second_attempt(context, label):
    if context.attempt == 1:
        raise ValueError("not yet")
    return [context.attempt, label, context.task_result.id, len(context.task_result.errors)]


@task
async def apack(label):
    return (await Order.objects.acreate(label=label)).label


@task
def note(label):
    Order.objects.create(label=label)


@task
def wait():
    time.sleep(60)
