"""Measure the CPU of this process's descendants, including ended ones: Spark's JVM and Python workers."""

from __future__ import annotations

import psutil

BROKER = "penstock.broker"
"""The module in a broker's command line; a broker's CPU is measured separately."""

FORK_SERVER = "penstock.spark.runtime.fork_server"
"""The module in a fork server's command line, whose last argument is the JVM's process id.

A fork server is no child of the JVM, but its own children are Python workers.
"""


def tree_cpu() -> float:
    """Return the CPU seconds of this process's descendants so far, without brokers'.

    A measurement is the difference of two calls. The CPU of an ended process is included in its parent's
    figure, once the parent has waited for it. The CPU of orphans, and of children of a parent that ignores
    SIGCHLD, is lost.
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
