"""Run by `manage.py test`: what a project's own tests see. The real database must stay untouched."""

import json

from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings

from orders.jobs import ship, ship_once_using
from orders.models import Order
from tenure import ConfigError, JobNotFound, TransactionAborted
from tenure.integrations.django import app
from tenure.integrations.django.models import LiveJob
from tenure.testing import assert_enqueued, drain, drain_sync, enqueued, run_inline


def jobs():
    with connection.cursor() as cursor:
        cursor.execute("select kind, input from tenure.jobs order by enqueued_at")
        return [(kind, json.loads(given) if isinstance(given, str) else given) for kind, given in cursor.fetchall()]


class InTransaction(TestCase):
    def test_a_job_is_part_of_the_test_s_transaction(self):
        order = Order.objects.create(label="one")
        ship.enqueue_sync(order.pk)
        self.assertEqual(jobs(), [("ship", {"order_id": order.pk})])

    def test_nothing_is_left_by_other_tests(self):
        self.assertEqual(jobs(), [])

    def test_many_jobs_are_part_of_it_too(self):
        app.enqueue_many_sync([ship.call(1), ship.call(2)])
        self.assertEqual([given for _, given in jobs()], [{"order_id": 1}, {"order_id": 2}])

    def test_an_inner_block_that_is_rolled_back_takes_its_job_along(self):
        ship.enqueue_sync(1)
        with transaction.atomic():
            ship.enqueue_sync(2)
            transaction.set_rollback(True)
        self.assertEqual([given for _, given in jobs()], [{"order_id": 1}])

    def test_a_broken_transaction_is_reported_as_such(self):
        order = Order.objects.create(label="one")
        with self.assertRaises(TransactionAborted), transaction.atomic():
            try:
                Order.objects.create(pk=order.pk, label="the same key")
            except Exception:
                ship.enqueue_sync(order.pk)

    def test_a_view_with_a_block_of_its_own(self):
        self.client.get("/orders/", {"label": "kept"})
        self.client.get("/orders/", {"label": "undone", "fail": 1})
        self.assertEqual(len(jobs()), 1)

    def test_the_database_is_the_test_database(self):
        self.assertIn(f"dbname={connection.settings_dict['NAME']}", app.settings.dsn)

    def test_a_handler_is_called_as_a_function(self):
        order = Order.objects.create(label="one")
        self.assertEqual(ship(order.pk), "shipped")

    async def test_a_coroutine_enqueues_in_the_transaction_of_its_test(self):
        response = await self.async_client.get("/async-orders/", {"label": "one"})
        self.assertEqual(response.status_code, 200)
        found = await Order.objects.raw("select 1 as id, count(*) as n from tenure.jobs").__aiter__().__anext__()
        self.assertEqual(found.n, 1)

    @override_settings(TENURE={"ENQUEUE_IN_TRANSACTION": False})
    def test_outside_of_transactions_if_the_settings_say_so(self):
        handle = ship.enqueue_sync(1)
        self.assertEqual(handle.status_sync().state, "pending")  # visible to other connections: it is committed
        handle.delete_sync()

    def test_a_single_call_can_stay_outside_of_the_transaction(self):
        handle = ship.using(in_transaction=False).enqueue_sync(1)
        self.assertEqual(handle.status_sync().state, "pending")
        [many] = app.enqueue_many_sync([ship.call(2)], in_transaction=False)
        self.assertEqual(many.status_sync().state, "pending")
        for one in (handle, many):
            one.delete_sync()

    async def test_a_single_call_of_a_coroutine_as_well(self):
        handle = await ship.using(in_transaction=False).enqueue(1)
        self.assertEqual((await handle.status()).state, "pending")
        await handle.delete()

    def test_jobs_run_inline_in_the_transaction_of_the_test(self):
        with run_inline(app) as ran:
            handle = ship_once_using.enqueue_sync("one")
            ship.enqueue_sync(handle.result_sync())
        self.assertEqual([handle.kind for handle in ran.handles], ["ship_once_using", "ship", "mails.send"])
        self.assertEqual(Order.objects.get().state, "shipped")

    def test_what_is_enqueued_can_be_asserted(self):
        ship.enqueue_sync(7)
        assert_enqueued(ship, args={"order_id": 7}, times=1)
        assert_enqueued(ship, args={"order_id": 7}, times=1, conn=connection)

    def test_a_drain_that_could_not_see_the_jobs_is_refused(self):
        self.assertEqual(drain_sync(app), [])
        ship.enqueue_sync(7)
        with self.assertRaisesRegex(ConfigError, "ship: enqueued in a transaction that is not committed"):
            drain_sync(app)

    async def test_a_drain_by_a_coroutine_as_well(self):
        await ship.enqueue(7)
        with self.assertRaisesRegex(ConfigError, "Use a TransactionTestCase"):
            await drain(app)

    def test_a_result_that_is_not_committed(self):
        with self.assertRaisesRegex(JobNotFound, "the transaction that enqueued it has not committed"):
            ship.enqueue_sync(7).status_sync()

    async def test_what_a_coroutine_enqueues_can_be_read(self):
        await ship.enqueue(7)
        self.assertEqual([job.args for job in await enqueued(ship)], [{"order_id": 7}])


class Flushed(TransactionTestCase):
    """Each of the two enqueues, and finds nothing of the other: the tables are emptied between them."""

    def test_first(self):
        self.assertEqual(LiveJob.objects.count(), 0)
        ship.enqueue_sync(1)

    def test_second(self):
        self.assertEqual(LiveJob.objects.count(), 0)
        ship.enqueue_sync(2)
        assert_enqueued(ship, args={"order_id": 2}, times=1)

    def test_due_jobs_can_be_drained(self):
        order = Order.objects.create(label="one")
        ship.enqueue_sync(order.pk)
        self.assertEqual([run.kind for run in drain_sync(app, concurrency=1)], ["ship", "mails.send"])
        order.refresh_from_db()
        self.assertEqual(order.state, "shipped")


class Committed(TransactionTestCase):
    def test_a_job_without_a_transaction_is_durable_at_once(self):
        handle = ship.enqueue_sync(1)
        self.assertEqual(handle.status_sync().state, "pending")
        self.assertIsNone(app.client().find_sync("01900000-0000-7000-8000-000000000000"))
        handle.delete_sync()

    def test_without_conn_a_job_is_part_of_the_block_around_it(self):
        """Nothing to forget: neither `conn=` nor `on_commit`."""
        with transaction.atomic():
            kept = ship.enqueue_sync(1)
            self.assertIsNone(app.client().find_sync(kept.id))  # workers do not see it yet
        self.assertEqual(kept.status_sync().state, "pending")
        with transaction.atomic():
            undone = ship.enqueue_sync(2)
            transaction.set_rollback(True)
        self.assertIsNone(app.client().find_sync(undone.id))
        kept.delete_sync()

    def test_requests_in_autocommit(self):
        response = Client().get("/async-orders/", {"label": "one"})
        handle = app.client().handle(response.json()["job"])
        self.assertEqual(handle.status_sync().kind, "ship")
        handle.delete_sync()

    def test_after_set_autocommit_a_job_waits_for_the_commit(self):
        transaction.set_autocommit(False)
        try:
            handle = ship.enqueue_sync(1)
            self.assertIsNone(app.client().find_sync(handle.id))
            transaction.commit()
            self.assertIsNotNone(app.client().find_sync(handle.id))
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        handle.delete_sync()
