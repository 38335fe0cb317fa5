"""Show errors of this package to the user as one line instead of a page of stack frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError

HIDE = "SPARK_HIDE_TRACEBACK"
"""The environment variable that makes a Spark worker report an exception without its traceback."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Suppress the traceback of a PenstockError that the block raises in a Spark worker.

    A worker ends with the error that it reports, so that the environment variable `HIDE` cannot affect errors
    of other code. Other exceptions are bugs and keep their traceback.
    """
    try:
        yield
    except PenstockError:
        if runs_in_worker():
            os.environ[HIDE] = "1"
        raise


def runs_in_worker() -> bool:
    """Return True if this process is one of Spark's Python workers, False if it is the user's program."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name in (
        "pyspark.daemon",
        "pyspark.worker",
        "penstock.spark.runtime.daemon",
    )
