"""The README and the documentation tell the truth: links lead somewhere, code runs, every command and option is described."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from dragoman.cli.app import app
from dragoman.connect import provider_names
from tests.test_local import real

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [ROOT / "README.md", ROOT / "docs" / "tutorial" / "first-answer.md"]
"""Pages whose Python code runs from top to bottom, with the local model."""

NAMED = ROOT / "docs" / "how-to" / "switch-providers.md"
"""The page that lists the names of providers."""

ALONE = [
    ROOT / "docs" / "how-to" / "cassettes.md",
    NAMED,
    ROOT / "docs" / "explanation" / "design.md",
    ROOT / "docs" / "reference" / "cost.md",
    ROOT / "docs" / "reference" / "validation.md",
]
"""Pages whose Python code runs from top to bottom and needs nothing."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}

    assert sorted(page for page in pages if f"]({page})" not in index) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_code_is_python(page: Path) -> None:
    for number, code in enumerate(blocks(page)):
        compile(code, f"{page.name}#{number}", "exec")


@pytest.mark.local
@real
@pytest.mark.parametrize("page", RUN, ids=name)
def test_python_code_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page.name}#{number}", "exec"), names)

    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", ALONE, ids=name)
def test_python_code_runs_without_a_model(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page.name}#{number}", "exec"), names)


@pytest.mark.local
@real
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=name)
def test_examples_run(example: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_every_name_of_a_provider_is_listed() -> None:
    text = NAMED.read_text(encoding="utf-8")

    assert [provider for provider in provider_names() if f"`{provider}`" not in text] == []


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(group: object = None, path: str = "") -> list[tuple[str, object]]:
    """Every command with its full name."""
    group = group if group is not None else typer.main.get_command(app)
    found: list[tuple[str, object]] = []
    for word, command in getattr(group, "commands", {}).items():
        found += commands(command, f"{path}{word} ") if hasattr(command, "commands") else [(f"{path}{word}", command)]
    return found


@pytest.mark.parametrize(("command", "declared"), commands(), ids=[path for path, _ in commands()])
def test_the_reference_describes_every_command_and_option(command: str, declared: object) -> None:
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    options = [option for parameter in declared.params for option in parameter.opts if option.startswith("--")]  # type: ignore[attr-defined]

    assert command.rsplit(maxsplit=1)[-1] in reference
    assert [option for option in options if option not in reference and option != "--help"] == []
    assert CliRunner().invoke(app, [*command.split(), "--help"]).exit_code == 0
