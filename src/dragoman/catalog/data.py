"""Reading the catalogue's data files, which stand beside this one."""

from __future__ import annotations

from os.path import dirname

__all__ = ["data_file"]


def data_file(name: str) -> bytes:
    """The bytes of a data file. Without pathlib and importlib.resources, which would cost a cold start more than the data does."""
    with open(f"{dirname(__file__)}/{name}", "rb") as file:  # noqa: PTH120, PTH123
        return file.read()
