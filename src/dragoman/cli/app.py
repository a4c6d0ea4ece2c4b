"""The commands and their options. Each command loads its own module when it runs, so `dragoman --help` costs little more than typer.

Options are declared here and nowhere else; what they mean is in the command's module, which returns an exit code (`outcome`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.outcome import guarded

__all__ = ["app", "run"]

app = typer.Typer(
    name="dragoman",
    help="Talk to LLM providers, replay recorded answers, run a toy model on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # they print local variables, which may be keys or prompts
)
local_app = typer.Typer(help="The toy model on this machine: no key, no internet.", no_args_is_help=True)
app.add_typer(local_app, name="local")

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
ShowThinking = Annotated[bool, typer.Option("--show-thinking", help="Show what the model thought, on standard error.")]


def run() -> int:
    """Run the command line; returns or exits with the exit code."""
    try:
        app()
    except KeyboardInterrupt:
        from dragoman.cli.outcome import INTERRUPTED

        return INTERRUPTED
    return 0


def _version(wanted: bool) -> None:
    if wanted:
        from dragoman import __version__

        typer.echo(f"dragoman {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False,
) -> None:
    """Options of the whole program."""
    del version


@app.command()
def probe(
    provider: Annotated[
        str, typer.Option(help="Which provider: anthropic, local, …; unless given, the one of DRAGOMAN_DEFAULT_MODEL, else anthropic")
    ] = "",
    model: Annotated[str, typer.Option(help="The model's id; for the local provider the path of a GGUF file.")] = "",
    prompt: Annotated[str | None, typer.Option(help="What to ask.", show_default="standard input")] = None,
    system: Annotated[str, typer.Option(help="The system prompt.")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="The longest answer, in tokens.", min=1)] = None,
    thinking: Annotated[str | None, typer.Option(help="A budget in tokens, 'adaptive' or 'off'.", metavar="N|adaptive|off")] = None,
    effort: Annotated[str | None, typer.Option(help="Effort: minimal, low, medium, high, xhigh, max.")] = None,
    show_thinking: ShowThinking = False,
    json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Send the call's span to the OTEL_EXPORTER_OTLP_* endpoint.")] = False,
    trace_console: Annotated[bool, typer.Option("--trace-console", help="Show the call's span on standard error.")] = False,
    record: Annotated[Path | None, typer.Option(help="Write the exchange to this cassette; replay reads it.", metavar="FILE")] = None,
) -> None:
    """Ask a model one thing and watch the answer arrive; then stop reason, usage and speed on standard error.

    Exit code: 0 answered, 1 the provider failed, 2 usage or configuration, 130 interrupted.
    """

    def command() -> int:
        from dragoman.cli.probe import probe

        return probe(
            provider=provider,
            model=model,
            prompt=prompt,
            system=system,
            max_tokens=max_tokens,
            thinking=thinking,
            effort=effort,
            show_thinking=show_thinking,
            json=json,
            trace=trace,
            trace_console=trace_console,
            record=record,
        )

    raise typer.Exit(guarded(command))


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(help="Recorded bodies: .sse or .json files.", metavar="FILE…")],
    wire: Annotated[str, typer.Option(help="The dialect they are in.")] = "anthropic",
    show_thinking: ShowThinking = False,
    json: Json = False,
) -> None:
    """Decode recorded answers offline, with response_meta.json and request.json beside them if there.

    Exit code: 0 all are answers, 1 one is an error or cut short, 2 one cannot be read.
    """

    def command() -> int:
        from dragoman.cli.replay import replay

        return replay(files, wire=wire, show_thinking=show_thinking, json=json)

    raise typer.Exit(guarded(command))


@app.command()
def models(
    filter: Annotated[str, typer.Argument(help="Only ids that contain this.", metavar="[TEXT]", show_default=False)] = "",
    provider: Annotated[str, typer.Option(help="Ask this provider, instead of the built-in catalogue.")] = "",
    json: Json = False,
) -> None:
    """List models and what they accept: those the built-in catalogue knows, offline, or those a provider offers."""

    def command() -> int:
        from dragoman.cli.models import models

        return models(filter=filter, provider=provider, json=json)

    raise typer.Exit(guarded(command))


@app.command("serve-faults")
def serve_faults(
    scenario: Annotated[str, typer.Option(help="Which bad day.", metavar="NAME")] = "",
    list_: Annotated[bool, typer.Option("--list", help="Explain every scenario, and what a correct client must do.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 is a free one.", min=0, max=65535)] = 0,
) -> None:
    """Be a provider on a bad day, for testing any client of the Messages protocol; prints the address."""

    def command() -> int:
        from dragoman.cli.faults import list_scenarios, serve_scenario

        return list_scenarios() if list_ else serve_scenario(scenario, host=host, port=port)

    raise typer.Exit(guarded(command))


@local_app.command()
def fetch(again: Annotated[bool, typer.Option("--again", help="Even if a whole file is there.")] = False) -> None:
    """Download the model's file (98 MB) into the cache folder and check it; prints its path."""

    def command() -> int:
        from dragoman.cli.local import fetch

        return fetch(again=again)

    raise typer.Exit(guarded(command))


@local_app.command()
def path() -> None:
    """Print the path of the model's file. Exit code 2 if it is missing."""

    def command() -> int:
        from dragoman.cli.local import path

        return path()

    raise typer.Exit(guarded(command))


@local_app.command()
def status() -> None:
    """Say what of the local provider is installed. Exit code 2 if it cannot answer."""

    def command() -> int:
        from dragoman.cli.local import status

        return status()

    raise typer.Exit(guarded(command))


@local_app.command()
def serve(
    model: Annotated[str, typer.Option(help="A GGUF file; the toy model if left out.")] = "",
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 is a free one.", min=0, max=65535)] = 0,
    api_key: Annotated[str, typer.Option(help="The key to ask for; none asked for if left out.", envvar="DRAGOMAN_LOCAL_API_KEY")] = "",
    threads: Annotated[int, typer.Option(help="Threads that compute; more than one only helps where cores are idle.", min=1)] = 1,
) -> None:
    """Run the model's server for other programs, until interrupted; prints its address."""

    def command() -> int:
        from dragoman.cli.local import serve

        return serve(model=model, port=port, api_key=api_key, threads=threads)

    raise typer.Exit(guarded(command))
