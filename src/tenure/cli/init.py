"""`tenure init`."""

from __future__ import annotations

from pathlib import Path

import click

from tenure.cli import codes, options, output

JOBS = '''"""Background jobs: functions that workers run. Try one with `tenure enqueue hello --arg name=Ada --wait`."""

from tenure import Context, Tenure

app = Tenure()


@app.job
async def hello(ctx: Context, name: str) -> str:
    ctx.log.info("greeting", name=name)
    return f"Hello, {name}!"
'''

SETTINGS = """# Settings of Tenure; `tenure config` shows all of them with their values.
app = "jobs:app"

# Without a database `tenure dev` starts one in .tenure/. In production set TENURE_DSN, or:
# dsn = "postgresql://user@host/database"

[workers]
default_count = 2    # worker processes
concurrency = 10     # jobs at a time in each
"""

FILES = {"jobs.py": JOBS, "tenure.toml": SETTINGS}

NEXT = (
    ("tenure dev", "start workers, and a PostgreSQL if none is set"),
    ("tenure enqueue hello --arg name=Ada --wait", "in another terminal: run a job and see its result"),
    ("tenure jobs list", "what was run"),
)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
@options.as_json
def init(folder: Path, force: bool, as_json: bool) -> int:
    """Begin a project: write a small jobs.py and tenure.toml into FOLDER (here), and print what to run next."""
    present = [name for name in FILES if (folder / name).exists()]
    if present and not force:
        verb = "exists" if len(present) == 1 else "exist"
        raise click.ClickException(f"{' and '.join(present)} {verb} already: nothing was written; --force overwrites")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    if as_json:
        output.emit({"written": [str(folder / name) for name in FILES], "next": [command for command, _ in NEXT]})
        return codes.FINE
    click.echo(f"wrote {' and '.join(str(folder / name) for name in FILES)}. What to run next:")
    if folder.resolve() != Path.cwd():
        click.echo(f"  cd {folder}")
    width = max(len(command) for command, _ in NEXT)
    for command, told in NEXT:
        click.echo(f"  {command:<{width}}  {told}")
    return codes.FINE
