"""How the process of ``penstock sql`` begins and ends, which costs more than most queries otherwise."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


class _NoPandas:
    """Finds no pandas."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        """Refuse one module, and leave others to others."""
        if name == "pandas":
            raise ModuleNotFoundError(f"no module named {name!r} in this process", name=name)


def without_pandas() -> None:
    """Have this process do without pandas, which pyarrow imports where it is installed: 0.2 s of CPU."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas())


def end_with(code: int) -> NoReturn:
    """End the process without looking for garbage: DuckDB's objects would be complained about on stderr."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
