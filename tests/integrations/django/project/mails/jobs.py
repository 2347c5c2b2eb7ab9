"""An app that can be reused in other projects: its jobs belong to no Tenure app of their own."""

from tenure import Jobs

jobs = Jobs(prefix="mails", queue="mail")


@jobs.job(name="send")
def send_mail(order_id: int) -> str:
    return f"order {order_id} is on its way"
