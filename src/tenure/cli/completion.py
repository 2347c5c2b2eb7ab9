"""`tenure completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

INSTALL = {
    "bash": """add to ~/.bashrc:  eval "$(tenure completion bash)\"""",
    "zsh": """add to ~/.zshrc, after compinit:  eval "$(tenure completion zsh)\"""",
    "fish": "once:  tenure completion fish > ~/.config/fish/completions/tenure.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)))
def completion(shell: str) -> None:
    """Print the completion script of your shell. Its first line says how to install it."""
    from tenure.cli.main import cli  # noqa: PLC0415 - it names this command

    script = get_completion_class(shell)
    assert script is not None
    click.echo(f"# To have it in every {shell}, {INSTALL[shell]}")
    click.echo(script(cli, {}, "tenure", "_TENURE_COMPLETE").source())
