"""Start the Python that plans a stream: forked by the session's fork server if there is one, else anew.

Spark starts this process for each stream, without a daemon, and waits for it. `worker_python` makes Spark run
this program instead of Python, before anything else is imported. So it is short, and imports only modules
that are built into Python. It is run by its path, as ``python -I -S fork_client.py PYTHON ARGUMENT...``. The
process that it starts gets its arguments, environment, working directory and standard streams; when one of
the two ends, the other ends too.
"""

from __future__ import annotations

import _socket
import marshal
import os
import sys

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module of PySpark that Spark runs to plan each stream."""

FRESH = "PENSTOCK_FORK_SERVER_FOR"
"""The environment variable that is set for a process that was not forked. Its value is the process id of the
JVM for which this process may start a fork server.
"""

PATIENCE_S = 2.0
"""Seconds to wait for an answer of the fork server, which normally answers at once."""

READY = b"+"

STREAMS = (0, 1, 2)


def address(jvm: int) -> bytes:
    """Return the address of the fork server for sessions of a JVM: an abstract Unix socket (without a file).

    Raises:
        OSError: there is no process with that id.
    """
    # A process id is used again, and in other containers: with its start it means one process.
    with open(f"/proc/{jvm}/stat", "rb") as stat:
        started = stat.read().rpartition(b")")[2].split()[19]
    return b"\0penstock-fork-server-%d-%d-%s" % (os.getuid(), jvm, started)


def is_own(connection: _socket.socket) -> bool:
    """Return True if the peer of a socket connection is a process of this user, in this PID namespace."""
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    pid, uid = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4))
    return pid != 0 and uid == os.getuid()


def served(arguments: list[str]) -> _socket.socket | None:
    """Request a process that runs `arguments` from the fork server; return the connection to it, or None."""
    try:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        connection.connect(address(os.getppid()))
        if not is_own(connection):
            return None
        body = marshal.dumps((arguments, dict(os.environb), os.getcwdb()))
        streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in STREAMS)
        connection.sendmsg(
            [len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
        )
        connection.sendall(body)
        if connection.recv(1) != READY:
            return None
        # Without this answer it ends: it never runs beside one that is started in its place.
        connection.sendall(READY)
        connection.settimeout(None)
    except OSError:
        return None
    return connection


def exit_code(connection: _socket.socket) -> int:
    """Wait for the process at the other end to end, and return its exit code; 1 if it was killed."""
    last = b""
    try:
        while code := connection.recv(1):
            last = code
    except OSError:
        pass
    return last[0] if last else 1


def main(python: str, arguments: list[str]) -> None:
    """Run Python with these arguments, in a forked or a new process. Does not return."""
    connection = served(arguments) if hasattr(_socket, "SO_PEERCRED") else None
    if connection is None:
        os.environ[FRESH] = str(os.getppid())
        os.execv(python, [python, *arguments])
    os._exit(exit_code(connection))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
