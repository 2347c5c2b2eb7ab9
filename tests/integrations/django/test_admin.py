"""The pages of Django's admin, as a logged-in user sees them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LOG_IN = """
from django.contrib.auth.models import Permission, User
from django.test import Client
from orders.jobs import app, create, ship
from tenure.integrations.django.models import LiveJob

def logged_in(**rights):
    user = User.objects.create_user("ada", "", "secret", is_staff=True, **rights)
    client = Client()
    client.force_login(user)
    return client

def page(client, path, **data):
    method = client.post if data else client.get
    response = method("/admin/tenure/" + path, data, follow=True)
    assert response.status_code == 200, (path, response.status_code)
    return response.content.decode()
"""


def test_lists_and_pages_of_jobs_workers_and_schedules(shop):
    program = """
client = logged_in(is_superuser=True)
handle = ship.using(key="first").enqueue_sync(1)
app.schedules.create_sync("nightly", "create", cron="0 3 * * *", input={"label": "x"})
assert str(handle.id) in page(client, "livejob/")
assert str(handle.id) in page(client, "livejob/?state=pending&kind=ship")
assert str(handle.id) not in page(client, "livejob/?state=running")
assert str(handle.id) in page(client, "livejob/?q=first")
assert "<pre>" in page(client, f"livejob/{handle.id}/change/")
assert "0 finished jobs" in page(client, "finishedjob/")
assert "nightly" in page(client, "schedule/")
page(client, "schedule/nightly/change/")
page(client, "worker/")
page(client, "livejob/", action="cancel", _selected_action=[str(handle.id)])
assert handle.status_sync().state == "canceled"
assert "1 finished job" in page(client, "finishedjob/")
page(client, "finishedjob/", action="retry", _selected_action=[str(handle.id)])
assert LiveJob.objects.count() == 1
page(client, "schedule/", action="run_now", _selected_action=["nightly"])
assert LiveJob.objects.filter(kind="create").count() == 1
page(client, "schedule/", action="pause", _selected_action=["nightly"])
assert app.schedules.find_sync("nightly").paused
assert "no such" not in page(client, "schedule/", action="resume", _selected_action=["nightly"])
"""
    shop.run(LOG_IN + program)


@pytest.mark.parametrize("path", ["livejob/add/", "livejob/{id}/delete/"])
def test_rows_are_neither_added_nor_deleted_there(shop, path):
    program = f"""
client = logged_in(is_superuser=True)
handle = ship.enqueue_sync(1)
assert client.get("/admin/tenure/" + "{path}".format(id=handle.id)).status_code == 403
"""
    shop.run(LOG_IN + program)


def test_a_user_who_may_only_view_has_no_actions(shop):
    program = """
client = logged_in()
User.objects.get().user_permissions.add(Permission.objects.get(codename="view_livejob"))
handle = ship.enqueue_sync(1)
assert 'value="cancel"' not in page(client, "livejob/")
page(client, "livejob/", action="cancel", _selected_action=[str(handle.id)])
assert handle.status_sync().state == "pending"
"""
    shop.run(LOG_IN + program)
