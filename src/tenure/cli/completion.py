"""`tenure completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

INSTALL = {
    "bash": """add to ~/.bashrc:  eval "$(tenure completion bash)\"""",
    "zsh": """add to ~/.zshrc, after compinit:  eval "$(tenure completion zsh)\"""",
    "fish": "run once:  tenure completion fish > ~/.config/fish/completions/tenure.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALL)))
def completion(shell: str) -> None:
    """Print the completion script for your shell. Its first line explains how to install it."""
    from tenure.cli.main import cli  # noqa: PLC0415 - main imports this module

    script = get_completion_class(shell)
    assert script is not None
    click.echo(f"# To install it for {shell}, {INSTALL[shell]}")
    click.echo(script(cli, {}, "tenure", "_TENURE_COMPLETE").source())
