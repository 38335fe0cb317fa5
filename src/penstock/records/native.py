"""Loads the compiled module `penstock._kernels`, if the build found a C compiler.

The compiled module has the kernels of `penstock.records.kernels`, and the loops of
`penstock.records.row_format`. Without it, or with ``PENSTOCK_PURE_PYTHON=1``, these functions run as plain
Python. This loader does not import numpy.
"""

from __future__ import annotations

import importlib
import os
from importlib.util import find_spec
from typing import Any

from penstock.common.logs import logger_named
from penstock.records.source_digest import DIGEST

_log = logger_named("penstock.records")


def _library() -> Any:
    """Return the compiled module, or None if it is missing or was built from other C sources."""
    if os.environ.get("PENSTOCK_PURE_PYTHON", "0") not in ("", "0"):
        return None
    try:
        library = importlib.import_module("penstock._kernels")
    except ImportError:
        _log.info("kernels run as plain Python: the package was installed without a C compiler")
        return None
    if library.DIGEST != DIGEST:
        _log.warning(
            "kernels run as plain Python: the compiled ones are of other sources; install the package again"
        )
        return None
    return library


LIBRARY = _library()


def has_kernels() -> bool:
    """Return True if numpy and the compiled kernels are installed.

    Otherwise, decoding records to rows is faster than decoding them to columns.
    """
    return LIBRARY is not None and find_spec("numpy") is not None
