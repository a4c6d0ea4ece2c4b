"""What a user installs: typed, licensed, with its data."""

from __future__ import annotations

from importlib.metadata import metadata, requires
from importlib.resources import files

import dragoman


def test_the_package_says_that_it_is_typed() -> None:
    assert (files("dragoman") / "py.typed").is_file()


def test_the_data_of_the_catalogue_and_the_local_template_are_there() -> None:
    for name in ("catalog/models.json", "catalog/prices.json", "local/smollm2.jinja"):
        assert (files("dragoman") / name).is_file(), name


def test_the_core_needs_only_what_the_readme_says() -> None:
    core = {need.split(">=")[0].split(";")[0].strip() for need in requires("dragoman") or [] if "extra ==" not in need}
    assert core == {"msgspec", "httpx2", "httptools"}


def test_the_metadata_names_licence_and_version() -> None:
    found = metadata("dragoman")
    assert (found["License-Expression"], found["Requires-Python"], found["Version"]) == ("Apache-2.0", ">=3.11", dragoman.__version__)
