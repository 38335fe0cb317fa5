"""Tests that the files for type checkers have all their numbered uses; mypy and Pyright check the uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TYPED = Path(__file__).resolve().parent / "typed"


@pytest.mark.parametrize("name", ["right", "wrong"])
def test_there_are_sixty_uses_of_each_kind(name: str) -> None:
    text = (TYPED / f"{name}.py").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"  # (\d+)$", text, re.MULTILINE)] == list(range(1, 61))
