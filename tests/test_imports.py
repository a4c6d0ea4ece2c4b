"""Who may import whom: design section 1, read from the source by ast, and what `import dragoman` loads, seen in a fresh interpreter."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import dragoman

SRC = Path(dragoman.__file__).parent
MODEL_FILES = {
    "accumulator",
    "errors",
    "event",
    "fragments",
    "history",
    "message",
    "newer",
    "request",
    "response",
    "schema",
    "storage",
    "value",
}
"""The model and what is made of it alone."""

EVENT_LOOPS = {"asyncio", "anyio", "trio", "sniffio", "uvloop"}
HTTP_CLIENTS = {"httpx2", "httpcore2", "httpx", "h11", "httptools", "aiohttp", "requests", "urllib3", "http"}
STDLIB = sys.stdlib_module_names


class Import(NamedTuple):
    """One import: where, what (a dotted name), and when it runs."""

    importer: str
    imported: str
    line: int
    at_module_level: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SRC.rglob("*.py")}


def imports_of(name: str) -> Iterator[Import]:
    """All imports of a module but those that only a type checker sees. `from a import b` counts as `a.b` where that is a module."""

    def visit(node: ast.AST, at_module_level: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Import(names=names):
                    for alias in names:
                        yield Import(name, alias.name, child.lineno, at_module_level)
                case ast.ImportFrom(module=module, names=names, level=level):
                    assert level == 0, f"{name}:{child.lineno}: a relative import"
                    for alias in names:
                        deeper = f"{module}.{alias.name}"
                        yield Import(name, deeper if deeper in MODULES else str(module), child.lineno, at_module_level)
                case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=other):
                    for statement in other:
                        yield from visit(ast.Module([statement], []), at_module_level)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    yield from visit(child, at_module_level=False)
                case _:
                    yield from visit(child, at_module_level)

    yield from visit(ast.parse(MODULES[name].read_text(encoding="utf-8")), at_module_level=True)


IMPORTS = [found for name in MODULES for found in imports_of(name)]


def room(module: str) -> str:
    """The first part below `dragoman`: `wire`, `message` …; `""` for what is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "dragoman" and len(parts) > 1 else ""


def dialect(module: str) -> str:
    """The dialect's folder, for a module of one."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["dragoman", "wire"] and len(parts) > 2 and (SRC / "wire" / parts[2]).is_dir() else ""


def offending(rule: object) -> list[str]:
    assert callable(rule)
    return [str(found) for found in IMPORTS if rule(found)]


def test_the_walk_finds_the_source() -> None:
    assert {"dragoman", "dragoman.wire.base", "dragoman.cli.app"} <= MODULES.keys()
    assert Import("dragoman.accumulator", "dragoman.errors", 0, at_module_level=True)[:2] in {found[:2] for found in IMPORTS}


def test_model_files_import_each_other_and_msgspec_only() -> None:
    def breaks(found: Import) -> bool:
        if room(found.importer) not in MODEL_FILES or not found.at_module_level:
            return False
        top = found.imported.split(".")[0]
        if top == "dragoman":
            return room(found.imported) not in MODEL_FILES | {"validation", "catalog"}
        return top != "msgspec" and top not in STDLIB

    assert offending(breaks) == []


def test_the_model_proper_does_not_know_validation_or_the_catalogue() -> None:
    core = MODEL_FILES - {"history"}
    assert offending(lambda found: room(found.importer) in core and room(found.imported) in {"validation", "catalog"}) == []


def test_wire_never_imports_transport_provider_or_telemetry() -> None:
    forbidden = {"transport", "provider", "stream", "call", "connect", "telemetry", "testing", "cli", "local"}
    assert offending(lambda found: room(found.importer) == "wire" and room(found.imported) in forbidden) == []


def test_wire_does_no_input_or_output() -> None:
    forbidden = EVENT_LOOPS | HTTP_CLIENTS | {"socket", "ssl", "threading", "time", "random", "secrets", "subprocess", "select", "os"}
    assert offending(lambda found: room(found.importer) == "wire" and found.imported.split(".")[0] in forbidden) == []


def test_dialects_never_import_each_other() -> None:
    def breaks(found: Import) -> bool:
        return bool(dialect(found.importer)) and dialect(found.imported) not in ("", dialect(found.importer))

    assert offending(breaks) == []


@pytest.mark.parametrize("leaf", ["cli", "telemetry", "testing", "local"])
def test_leaves_are_imported_by_nothing_at_module_level(leaf: str) -> None:
    def breaks(found: Import) -> bool:
        return found.at_module_level and room(found.imported) == leaf and room(found.importer) not in (leaf, "cli", "__main__")

    assert offending(breaks) == []


def test_only_transports_and_leaves_know_an_http_client() -> None:
    allowed = {"transport", "testing"}
    assert offending(lambda found: found.imported.split(".")[0] in HTTP_CLIENTS and room(found.importer) not in allowed) == []


def test_drivers_import_no_event_loop() -> None:
    allowed = {"transport", "testing", "local", "cli"}
    assert offending(lambda found: found.imported.split(".")[0] in EVENT_LOOPS and room(found.importer) not in allowed) == []


def test_the_command_line_declares_its_commands_without_loading_them() -> None:
    allowed = {"dragoman.cli.outcome", "dragoman.cli"}

    def breaks(found: Import) -> bool:
        ours = found.imported.startswith("dragoman") and found.imported not in allowed
        return found.at_module_level and found.importer == "dragoman.cli.app" and ours

    assert offending(breaks) == []


def loaded_by(statement: str) -> set[str]:
    """The modules that a statement adds to a bare interpreter (without `site`, whose .pth files may import anything)."""
    paths = [path for path in sys.path if path]
    code = f"""
import sys
sys.path[:0] = {paths!r}
before = set(sys.modules)
{statement}
after = set(sys.modules)
import json
print(json.dumps(sorted(after - before)))
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_dragoman_loads_msgspec_and_our_types_only() -> None:
    loaded = loaded_by("import dragoman")
    tops = {module.split(".")[0] for module in loaded}
    of_msgspec = {module.split(".")[0] for module in loaded_by("import msgspec")}  # it looks for typing_extensions
    third_party = {top for top in tops - of_msgspec if top not in STDLIB and top != "dragoman"}

    assert "msgspec" in tops
    assert third_party == set()
    assert not tops & (EVENT_LOOPS | HTTP_CLIENTS | {"ssl", "socket", "subprocess"})
    assert {room(module) for module in loaded} & {"wire", "transport", "provider", "telemetry", "cli", "testing", "catalog"} == set()
    assert len(loaded) <= 200


def test_connect_alone_loads_no_http_client() -> None:
    loaded = loaded_by("import dragoman; dragoman.connect('anthropic', api_key='sk-test')")
    assert not {module.split(".")[0] for module in loaded} & (HTTP_CLIENTS | EVENT_LOOPS)


def test_the_package_says_that_it_is_typed() -> None:
    assert (SRC / "py.typed").is_file()


def test_every_public_name_can_be_had() -> None:
    assert [name for name in dir(dragoman) if not hasattr(dragoman, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        dragoman.Nonsense  # noqa: B018
