"""Errors of this package reach the user as one line instead of a page of stack frames."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError

HIDE = "SPARK_HIDE_TRACEBACK"
"""Read by Spark's Python workers at the moment they report an exception."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let a PenstockError leave a Spark worker without its stack, which says nothing to a user.

    Works in a worker process only, where the process ends with the error it reports, so that the
    setting cannot hide what anybody else raises. Other exceptions are bugs and keep their stack.
    """
    try:
        yield
    except PenstockError:
        os.environ[HIDE] = "1"
        raise
