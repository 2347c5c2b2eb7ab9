"""An app for any project: its jobs are part of the project's app as soon as it is installed."""

from mails.models import Mail
from tenure import Jobs

jobs = Jobs(prefix="mails", queue="mail")


@jobs.job
def send(order_id: int, text: str) -> int:
    return Mail.objects.create(order_id=order_id, text=text).pk
