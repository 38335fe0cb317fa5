"""Tests of `make setup` where it cannot work: besides pip's output, one paragraph gives reason and remedy."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

MAKEFILE = Path(__file__).parents[1] / "Makefile"

IMPORTED_MARK = re.compile(r"^(from|import) .*\bmark\b|^(from|import|    ).*\bpytestmark\b", re.MULTILINE)

PYTHON_WITHOUT_NETWORK = """#!/bin/sh
# A Python that makes environments in which pip fails.
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip") echo "ERROR: No matching distribution found for pip" >&2; exit 1 ;;
esac
"""


def make(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text(PYTHON_WITHOUT_NETWORK)
    (programs / "python3").chmod(0o755)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "constraints.txt").touch()
    return subprocess.run(
        ["make", "-f", str(MAKEFILE), *words],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_network_it_says_what_pip_needs(tmp_path: Path) -> None:
    done = make(tmp_path, "setup")
    assert done.returncode == 2
    assert "ERROR: No matching distribution" in done.stderr
    assert "It needs the network" in done.stderr
    assert "PIP_FIND_LINKS=DIRECTORY" in done.stderr


def test_where_the_user_may_not_write_it_says_who_may(tmp_path: Path) -> None:
    # Nobody may make a directory there, not even root.
    (tmp_path / "file").touch()
    done = make(tmp_path, "setup", "VENV=file/.venv")
    assert done.returncode == 2
    assert f"may not write to {tmp_path}/file/.venv" in done.stderr
    assert "Clone into a directory of your own" in done.stderr
    assert "pip" not in done.stderr


def test_marks_of_files_that_make_compat_looks_for_stand_in_them() -> None:
    """Outside of tests/compat, `make compat` collects only files whose own text has a certain pytest mark.

    So no file may import that mark.
    """
    tests = Path(__file__).parent
    files = [path for path in tests.rglob("test_*.py") if tests / "compat" not in path.parents]
    assert [path.name for path in files if IMPORTED_MARK.search(path.read_text(encoding="utf-8"))] == []
