"""Compilation of the tests before several processes collect them.

pytest caches rewritten test modules, and Python caches compiled modules of the package. A new checkout has no
cache, and each of the processes would compile all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

FEW = 100
"""The number of uncompiled files up to which no compilation in advance is worthwhile."""

AT_ONCE = 2


def uncompiled(files: Sequence[Path]) -> list[Path]:
    """Return the test files whose cached compiled module is missing, or older than the file."""
    suffix = f".{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"

    def is_compiled(file: Path) -> bool:
        kept = file.parent / "__pycache__" / f"{file.stem}{suffix}"
        return kept.exists() and kept.stat().st_mtime >= file.stat().st_mtime

    return [file for file in files if not is_compiled(file)]


def compile_first(folder: Path, ignored: Path) -> None:
    """Compile uncompiled test files in several processes, if there are more than `FEW`."""
    if sys.dont_write_bytecode:
        return
    files = [file for file in sorted(folder.rglob("test_*.py")) if ignored not in file.parents]
    missing = uncompiled(files)
    if len(missing) <= FEW:
        return
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    running = [
        subprocess.Popen(
            [*command, *missing[number::AT_ONCE]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for number in range(AT_ONCE)
    ]
    for process in running:
        process.wait()  # what cannot be collected is told by the processes that collect it again
