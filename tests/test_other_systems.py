"""Tests that broker and client work without features that macOS, Windows and Alpine lack.

They simulate these systems as far as possible on this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("other_systems.py")


@pytest.mark.parametrize("system", ["macos", "windows", "musl"])
def test_both_ends_work_without_what_is_not_there(system: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(PROGRAM), system, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=os.environ.copy()
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "whole"
