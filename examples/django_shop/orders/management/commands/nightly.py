from django.core.management.base import BaseCommand
from django.db import transaction

from orders.jobs import ship
from orders.models import Order
from tenure.integrations.django import app


class Command(BaseCommand):
    help = "Ships all new orders."

    @transaction.atomic
    def handle(self, **options):
        calls = [ship.call(order.pk) for order in Order.objects.filter(state="new")]
        app.enqueue_many_sync(calls)
        self.stdout.write(f"{len(calls)} orders will be shipped")
