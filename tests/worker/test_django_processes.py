"""A Django project with jobs in processes of their own: Django is set up there before a module with models is imported."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.processes import run_process, worker_process
from tests.transactions.django_orm import skip_on_old_servers
from tests.waiting import until

FILES = {
    "shop/__init__.py": "",
    "shop/settings.py": """
        import os
        from psycopg.conninfo import conninfo_to_dict

        given = conninfo_to_dict(os.environ["TENURE_DSN"])
        DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": given.pop("dbname"), "OPTIONS": given}}
        INSTALLED_APPS = ["orders"]
        """,
    "shop/background.py": """
        from tenure import Tenure

        app = Tenure()
        """,
    "shop/worker.py": """
        import os
        import django

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
        django.setup()

        from shop.background import app
        import orders.jobs
        """,
    "orders/__init__.py": "",
    "orders/models.py": """
        from django.db import models

        class Order(models.Model):
            label = models.TextField()
        """,
    "orders/jobs.py": """
        from orders.models import Order
        from shop.background import app

        @app.job(run_in="process", max_attempts=1)
        def count() -> int:
            return Order.objects.count()
        """,
    "script.py": """
        import asyncio, os
        import django

        os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
        django.setup()

        from orders.jobs import count
        from shop.background import app

        async def main():
            async with app.running():
                print(await (await count.enqueue()).result(timeout="30s"))
            await app.close()

        if __name__ == "__main__":
            asyncio.run(main())
        """,
}


@pytest.fixture
def shop(project, dsn, sql):
    from textwrap import dedent

    skip_on_old_servers(dsn)
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(dedent(text))
    sql("create table orders_order (id bigint primary key, label text not null)")
    sql("insert into orders_order values (1, 'one'), (2, 'two')")
    return project


@pytest.fixture
def dsn(fresh_dsn):
    return fresh_dsn


async def test_the_module_of_the_app_is_imported_before_that_of_the_job(shop, dsn, sql):
    sql("select tenure.enqueue(%s)", json.dumps([{"kind": "count", "max_attempts": 1}]))
    with worker_process(shop, dsn, app="shop.worker:app", env={"TENURE_DSN": dsn}):
        over = "select state, coalesce(output::text, error) from tenure.all_jobs where state in ('completed', 'dead_letter')"
        assert await until(lambda: sql(over), within=30) == [("completed", "2")]


@pytest.mark.slow
def test_a_worker_in_the_callers_own_process_sets_up_django_for_its_processes(shop, dsn):
    env = {**os.environ, "TENURE_DSN": dsn}
    ran = run_process([sys.executable, "script.py"], cwd=shop, env=env, timeout=60)
    assert (ran.stdout, ran.returncode) == ("2\n", 0), ran.stderr
