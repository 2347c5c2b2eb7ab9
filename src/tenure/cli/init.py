"""`tenure init`."""

from __future__ import annotations

from pathlib import Path

import click

from tenure.cli import exit_codes, options, output

JOBS = '''"""Background jobs: functions that workers run. Try one with `tenure enqueue hello --arg name=Ada --wait`."""

from tenure import Context, Tenure

app = Tenure()


@app.job
async def hello(ctx: Context, name: str) -> str:
    ctx.log.info("greeting", name=name)
    return f"Hello, {name}!"
'''

SETTINGS = """# Tenure's settings; `tenure config` shows all of them with their values.
app = "jobs:app"

# If no database is set, `tenure dev` starts one in .tenure/. In production set TENURE_DSN, or:
# dsn = "postgresql://user@host/database"

[workers]
default_count = 2    # worker processes
concurrency = 10     # jobs at a time in each process
"""

FILES = {"jobs.py": JOBS, "tenure.toml": SETTINGS}

NEXT = (
    ("tenure dev", "start workers and a PostgreSQL"),
    ("tenure enqueue hello --arg name=Ada --wait", "in another terminal: run a job"),
    ("tenure jobs list", "list the jobs"),
)


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@options.as_json
def init(folder: Path, force: bool, as_json: bool) -> int:
    """Start a project: write a small jobs.py and tenure.toml to FOLDER (default: here), and print what to run next."""
    present = [name for name in FILES if (folder / name).exists()]
    if present and not force:
        verb = "exists" if len(present) == 1 else "exist"
        raise click.ClickException(f"{' and '.join(present)} {verb} already, so nothing was written; pass --force to overwrite")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    if as_json:
        output.print_json({"written": [str(folder / name) for name in FILES], "next": [command for command, _ in NEXT]})
        return exit_codes.SUCCESS
    click.echo(f"wrote {' and '.join(str(folder / name) for name in FILES)}. Next:")
    if folder.resolve() != Path.cwd():
        click.echo(f"  cd {folder}")
    width = max(len(command) for command, _ in NEXT)
    for command, purpose in NEXT:
        click.echo(f"  {command:<{width}}  {purpose}")
    return exit_codes.SUCCESS
