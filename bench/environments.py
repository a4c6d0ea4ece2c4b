"""The environments that are measured: one per library, pinned, built on demand outside of the repository and kept.

They live in `~/.cache/dragoman-bench` (or `DRAGOMAN_BENCH_CACHE`). dragoman's own holds only what it depends on, and takes the package from
this checkout; what single cases need beside (uvloop, OpenTelemetry) lies in folders of their own, so that it counts for nobody's size.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["CACHE", "ENVIRONMENTS", "EXTRAS", "extra", "installed", "python"]

CACHE = Path(os.environ.get("DRAGOMAN_BENCH_CACHE", "~/.cache/dragoman-bench")).expanduser()
ROOT = Path(__file__).parent.parent

ENVIRONMENTS: dict[str, list[str]] = {
    "dragoman": ["msgspec==0.23.0", "httpx2==2.16.2", "httptools==0.9.0"],
    "anthropic-2.14.0": ["anthropic==2.14.0"],
    "anthropic-aiohttp-2.14.0": ["anthropic[aiohttp]==2.14.0"],
    "litellm-1.110.2": ["litellm==1.110.2"],
    "langchain-anthropic-1.7.10": ["langchain-anthropic==1.7.10"],
    "pydantic-ai-slim-2.68.0": ["pydantic-ai-slim[anthropic]==2.68.0"],
    "any-llm-sdk-1.27.0": ["any-llm-sdk[anthropic]==1.27.0"],
}
"""Requirements by name of the environment."""

EXTRAS: dict[str, list[str]] = {"uvloop": ["uvloop==0.23.0"], "otel": ["opentelemetry-sdk==1.45.2"]}
"""Folders that single cases put on the path."""

_NOT_COUNTED = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence.pth", "__pycache__")


def python(name: str) -> Path:
    """The interpreter of an environment, built if need be. Raises CalledProcessError if it cannot be."""
    home = CACHE / name
    executable = home / "bin" / "python"
    if not (home / ".ok").exists():
        print(f"building {home} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([executable, "-m", "pip", "install", "--quiet", *ENVIRONMENTS[name]], check=True, stderr=subprocess.DEVNULL)
        subprocess.run([executable, "-m", "compileall", "-q", home / "lib"], check=False, stdout=subprocess.DEVNULL)
        (home / ".ok").touch()
    return executable


def extra(name: str) -> Path:
    """A folder with some more packages, filled if need be."""
    home = CACHE / f"extra-{name}"
    if not (home / ".ok").exists():
        print(f"building {home} …", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", home, *EXTRAS[name]]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        (home / ".ok").touch()
    return home


def installed(name: str) -> dict[str, float]:
    """What an environment weighs: distributions, megabytes without bytecode, Python files. dragoman's includes this checkout's package."""
    site = next((CACHE / name / "lib").glob("python3*/site-packages"))
    roots = [path for path in site.iterdir() if not path.name.startswith(_NOT_COUNTED)]
    dists = sum(path.name.endswith(".dist-info") for path in roots)
    if name == "dragoman":
        roots.append(ROOT / "src" / "dragoman")
        dists += 1
    files = [file for root in roots for file in ([root] if root.is_file() else root.rglob("*")) if file.is_file() and file.suffix != ".pyc"]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    return {"distributions": dists, "megabytes": round(megabytes, 1), "python files": sum(file.suffix == ".py" for file in files)}
