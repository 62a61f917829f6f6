"""The command ``browsermw``: which commands there are, and nothing else.

Called by the console script and by ``python -m browsermw``. Each command lives in a file of its own beside
this one; this file only lists them.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from browsermw.cli import demo, doctor, install_browser, quarantine, runs, show, status
from browsermw.cli.exits import EPILOG

__all__ = ["app", "main"]

app = typer.Typer(
    name="browsermw", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, epilog=EPILOG
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"browsermw {version('browsermw')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Makes browser agents safe to interrupt: nothing is sent twice, nothing in doubt is guessed."""


app.command("demo", epilog=EPILOG)(demo.command)
app.command("doctor", epilog=EPILOG)(doctor.command)
app.command("status", epilog=EPILOG)(status.command)
app.command("runs", epilog=EPILOG)(runs.command)
app.command("show", epilog=EPILOG)(show.command)
app.add_typer(quarantine.app, name="quarantine")
app.command("install-browser")(install_browser.command)


def main() -> None:
    """Run the command line that this process was started with."""
    app()
