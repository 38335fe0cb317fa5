"""CPU of the processes below this one, ended ones too: the JVM of Spark and its Python workers."""

from __future__ import annotations

import psutil

BROKER = "penstock.broker"
"""A module in the command line of a process that is measured apart."""

FORK_SERVER = "penstock.spark.runtime.fork_server"
"""No child of the JVM whose process id is its last argument; its own children are."""


def tree_cpu() -> float:
    """CPU seconds of the processes below this one so far, a broker's left out: compare two calls.

    A process that has ended is in the figure of the parent that waited for it, with all that this one had
    waited for. What ended without a parent that waits, because it was left alone or SIGCHLD is ignored, is
    lost.
    """
    own = psutil.Process()
    below = own.children(recursive=True)
    ids = {str(process.pid) for process in below}
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if FORK_SERVER in words and words[-1] in ids:
            below += [process, *_below(process)]
    of_ended = own.cpu_times()
    total = of_ended.children_user + of_ended.children_system
    for process in {each.pid: each for each in below}.values():
        try:
            if BROKER not in process.cmdline():
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        except psutil.NoSuchProcess:
            continue
    return total


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
