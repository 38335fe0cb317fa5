"""Tests that the documentation lists all errors, and that the package has the project's version."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

from for_each import for_each
from penstock import errors
from penstock.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
TOLD = {
    name: re.findall(r"`(\w+)`", bases)
    for name, bases in re.findall(r"^\| `(\w+)` \| ([^|]*) \|", PAGE, re.MULTILINE)
}
CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__ and not name.startswith("_")
}


def test_the_page_names_every_error() -> None:
    assert len(CLASSES) > 10
    assert TOLD.keys() == CLASSES.keys()


@for_each(TOLD)
def test_an_error_is_what_the_page_says(name: str) -> None:
    assert [base.__name__ for base in CLASSES[name].__bases__] == TOLD[name]
    assert issubclass(CLASSES[name], errors.PenstockError)


def test_the_version_of_the_package_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
