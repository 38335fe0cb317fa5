"""Spark's daemons of Python workers, changed so that an idle worker ends without a traceback.

Spark closes the connection of a worker that was idle for a minute. Over a unix domain socket the worker's
last flush then fails, and a BrokenPipeError appears on the user's screen, although nothing is wrong.
Everything else is Spark's own daemon. Run as a module, this is the daemon of the workers that run tasks
(setting spark.python.daemon.module). No setting selects the daemon of the workers that plan queries, so these
workers change it when they import the data source.
"""

from __future__ import annotations

import gc
import os
import sys
from socket import socket
from typing import Any


def leave_quietly(daemon: Any) -> None:
    """Change `daemon`, a module like `pyspark.daemon`, so that its forked workers end without output."""
    serve = daemon.worker

    def worker(sock: socket, authenticated: bool) -> int:
        try:
            code: int = serve(sock, authenticated)
        except BrokenPipeError:
            os._exit(0)
        return code

    daemon.worker = worker


def leave_planner_quietly() -> None:
    """Make workers of the daemon end without output, if this process is a Spark worker that plans queries."""
    daemon = _planners_daemon()
    if daemon is not None:
        leave_quietly(daemon)


def settle_planner() -> None:
    """Exclude imported objects from garbage collection (`gc.freeze`) in a worker that plans queries.

    Such a worker serves many queries, and Spark runs the garbage collector after each. That takes 10 ms of
    CPU and more with PySpark, PyArrow and this package loaded, and almost none once their objects are frozen.
    """
    if _planners_daemon() is not None:
        gc.freeze()


def _planners_daemon() -> Any:
    """Return the daemon module of this process if it is a worker that plans queries, else None."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return main if spec is not None and spec.name == "pyspark.daemon" else None


if __name__ == "__main__":
    from pyspark import daemon

    leave_quietly(daemon)
    daemon.manager()
