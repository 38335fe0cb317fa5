"""Shortens the start and the end of the process of ``penstock sql``, which can take longer than a query."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


class _NoPandas:
    """An import finder that makes imports of pandas fail as if it were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas; return None for other modules."""
        if name == "pandas":
            raise ModuleNotFoundError(f"no module named {name!r} in this process", name=name)


def without_pandas() -> None:
    """Prevent pyarrow from importing pandas in this process, which takes 0.2 s of CPU."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())


def end_with(code: int) -> NoReturn:
    """End the process without Python's cleanup, during which DuckDB's objects print warnings to stderr."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
