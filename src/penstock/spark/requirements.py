"""The oldest supported PySpark, and the error for a missing or older installation."""

from __future__ import annotations

import re
import sys

from penstock.errors import MissingDependencyError

OLDEST_PYSPARK = (4, 0)
"""The first release with data sources in Python."""

_INSTALL = "pip install 'penstock[spark]'"


def unusable(error: ImportError) -> MissingDependencyError:
    """Return the error to raise instead of an ImportError if PySpark is missing or too old.

    The ImportError comes from a module of `penstock.spark`."""
    if isinstance(error, MissingDependencyError):
        if not isinstance(error.__cause__, ImportError):
            return error
        error = error.__cause__
    needed = ".".join(map(str, OLDEST_PYSPARK))
    name = error.name or ""
    installed = pyspark_version()
    if installed is None:
        reason = f"penstock.spark needs PySpark {needed} or newer, which is not installed"
    elif _number(installed) < OLDEST_PYSPARK:
        reason = f"penstock.spark needs PySpark {needed} or newer, and this is {installed}"
    elif isinstance(error, ModuleNotFoundError) and name.partition(".")[0] not in ("", "penstock", "pyspark"):
        reason = f"penstock.spark needs {name.partition('.')[0]}, which is not installed"
    else:
        reason = f"penstock.spark cannot be imported with PySpark {installed} ({error})"
    return MissingDependencyError(f"{reason}: {_INSTALL}, on the driver and on every executor")


def pyspark_version() -> str | None:
    """Return the version of the installed PySpark, or None if it cannot be imported."""
    try:
        import pyspark
    except ImportError:
        return None
    # Where the import of a part failed, the package itself is there all the same.
    return str(getattr(sys.modules.get("pyspark.version", pyspark), "__version__", "0"))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
