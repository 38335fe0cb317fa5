"""Tests that test files are compiled in advance only if their compiled modules are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import compiled_first
from compiled_first import compile_first, uncompiled


def test_a_file_is_compiled_until_it_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text("def test_one():\n    assert True\n")
    assert uncompiled([file]) == [file]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", str(file)]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert uncompiled([file]) == []
    os.utime(file, (2e9, 2e9))
    assert uncompiled([file]) == [file]


@pytest.mark.parametrize("count", [3, 4])
def test_many_files_are_shared_out_and_what_is_ignored_is_not(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[Any]] = []

    class Process:
        def __init__(self, command: list[Any], **_: object) -> None:
            asked.append(command[command.index("no:cacheprovider") + 1 :])

        def wait(self) -> None: ...

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(compiled_first, "FEW", 3)
    monkeypatch.setattr(compiled_first.subprocess, "Popen", Process)
    (tmp_path / "compat").mkdir()
    for number in range(count):
        (tmp_path / f"test_{number}.py").touch()
        (tmp_path / "compat" / f"test_{number}.py").touch()
    compile_first(tmp_path, tmp_path / "compat")
    assert sorted(path for paths in asked for path in paths) == (
        [tmp_path / f"test_{number}.py" for number in range(4)] if count > 3 else []
    )
