from django.core.management import call_command
from django.test import TestCase, TransactionTestCase

from mails.jobs import send
from mails.models import Mail
from orders.jobs import count_orders, ship, summarize
from orders.models import Order
from tenure.integrations.django import app
from tenure.integrations.django.models import LiveJob
from tenure.testing import drain_sync, run_inline


class InOneTransaction(TestCase):
    """Each test is one transaction, and so are its jobs: nothing is left of them."""

    def test_an_order_and_its_job_belong_together(self):
        job = self.client.get("/orders/").json()["job"]
        self.assertEqual(str(LiveJob.objects.get().id), job)

    def test_a_refused_order_has_no_job(self):
        self.client.get("/orders/refused/")
        self.assertEqual((Order.objects.count(), LiveJob.objects.count()), (0, 0))

    def test_an_inner_block_is_undone_alone(self):
        answer = self.client.get("/orders/parts/").json()
        self.assertEqual([str(job.id) for job in LiveJob.objects.all()], [answer["job"]])

    async def test_an_async_view_enqueues_in_the_same_transaction(self):
        answer = (await self.async_client.get("/orders/async/")).json()
        self.assertEqual((await LiveJob.objects.aget()).input, {"order_id": answer["order"]})

    def test_the_nightly_command(self):
        Order.objects.create(label="one")
        call_command("nightly", verbosity=0)
        self.assertEqual(LiveJob.objects.get().kind, "ship")

    def test_what_the_jobs_do(self):
        with run_inline(app):
            self.client.get("/orders/")
        self.assertEqual(Order.objects.get().state, "shipped")
        self.assertEqual(Mail.objects.get().text, "an order is on its way")


class FromEndToEnd(TransactionTestCase):
    def test_jobs_in_threads_coroutines_and_processes(self):
        order = self.client.get("/orders/").json()["order"]
        self.assertEqual([run.kind for run in drain_sync(app)], [ship.name, send.name])
        counted, labels = count_orders.enqueue_sync("shipped"), summarize.enqueue_sync()
        drain_sync(app)
        self.assertEqual((counted.result_sync(), labels.result_sync()), (1, {"an order": order}))
