"""Placeholder: replace it with your app."""

from tenure import Context, Tenure

app = Tenure()


@app.job
async def hello(ctx: Context, name: str = "world") -> str:
    return f"hello {name}, from {ctx.worker_id}"


@app.job(queue="media")
def resize(path: str) -> str:
    return path
