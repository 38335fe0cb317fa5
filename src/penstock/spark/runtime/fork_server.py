"""A fork server for the processes that plan streams; it imports the modules of these processes once.

Spark has daemons that fork the workers of tasks, but starts a new Python for each stream: its imports take
0.4 CPU seconds before the first offsets. In a local session the first stream of this source starts this
server after its first complete micro-batch; later streams, of any source, are forked from it (`fork_client`).
The server ends with the JVM, or after a minute without a new stream, as Spark's idle workers do.

A process that is forked here runs Spark's own module as its main one. A process is forked only if it would
have the same environment and working directory as the server, and while the server has a single thread of
Python. Linux only. On other systems, and after any failure, each stream starts a new Python.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from importlib import import_module
from typing import NamedTuple, NoReturn

from penstock.spark.runtime.fork_client import FRESH, PATIENCE_S, READY, RUNNER, STREAMS, address, is_own

IDLE_S = 60
"""Seconds without a new stream after which the server ends."""

REQUEST_BYTES_MAX = 1 << 20
"""The largest request (arguments and environment of a process) in bytes, about the limit of Linux."""

OWN_NAMES = (
    b"PYTHON_WORKER_FACTORY_PORT",
    b"PYTHON_WORKER_FACTORY_SECRET",
    b"PYTHON_WORKER_FACTORY_SOCK_PATH",
    FRESH.encode(),
    b"_",
    b"SHLVL",
    b"PWD",
    b"OLDPWD",
)
"""Environment variables that are not compared, because Spark or the starting shell sets them differently for
each process."""

_SOURCE = (
    "penstock.spark.source.data_source",
    "penstock.client.fetch.offsets",
    "penstock.client.cluster.client",
    "encodings.idna",
)
"""The modules that are imported to plan a stream of the source `penstock`."""

_F_SETSIG = 10
"""The fcntl command `F_SETSIG`, which Python does not define: sets the signal for an event on a descriptor.
"""


class ForkRequest(NamedTuple):
    """A process to fork: its arguments, streams and environment, and the client's connection."""

    connection: socket.socket
    arguments: list[str]
    environment: dict[bytes, bytes]
    directory: bytes
    streams: list[int]


def start_server() -> None:
    """Start a fork server for later streams, if this process was not forked by one and may start one.

    PENSTOCK_FORK_SERVER=no in the environment of the session prevents the start.
    """
    jvm = os.environ.pop(FRESH, None)
    if jvm is None or os.environ.get("PENSTOCK_FORK_SERVER") == "no" or not hasattr(os, "pidfd_open"):
        return
    command = [sys.executable, "-m", __name__, jvm]
    # Started by a shell that ends at once: no process stays behind unreaped here when the server ends.
    shell = ["/bin/sh", "-c", '"$0" "$@" </dev/null >/dev/null 2>&1 &', *command]
    try:
        with open("/proc/self/environ", "rb") as first:
            pairs = [pair.partition(b"=") for pair in first.read().split(b"\0") if pair]
        environment = {name: value for name, _, value in pairs if name not in OWN_NAMES}
        subprocess.run(shell, env=environment, start_new_session=True, check=False, timeout=PATIENCE_S)
    except (OSError, subprocess.SubprocessError):
        return  # the next stream starts a Python of its own, as this one did


def serve(jvm: int, module: str) -> ForkRequest | None:
    """Fork a process for each suitable request, until the JVM ends or no request arrives for a minute.

    Returns None at the end; in a forked process, returns its request.

    Raises:
        OSError: another server listens, or the JVM has ended.
    """
    own = os.environb.copy(), os.getcwdb()
    jvm_end = os.pidfd_open(jvm)  # readable when it ends
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address(jvm))
        import_ahead(module)
        listener.listen(16)
        signal.signal(signal.SIGCHLD, take_ended)
        poll = select.poll()
        poll.register(jvm_end, select.POLLIN)
        poll.register(listener, select.POLLIN)
        while ready := poll.poll(IDLE_S * 1000):
            if any(fd == jvm_end for fd, _ in ready):
                return None
            request = received(listener.accept()[0])
            if request is None:
                continue
            if suits(request, module, *own) and fork() == 0:
                os.close(jvm_end)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return request
            close(request)
    return None


def take_ended(*_: object) -> None:
    """Reap child processes that have ended, so that their CPU time is added to that of this process."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def fork() -> int:
    """Fork this process without Python's warning about threads; only libraries have threads in it."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python from 3.12 on warns of any thread
        return os.fork()


def import_ahead(module: str) -> None:
    """Import the modules that a stream needs, and compile the codecs for the requests of planning."""
    for name in (module, *_SOURCE):
        import_module(name)
    del sys.modules[module]  # it is run as the main module
    compile_codecs()
    gc.collect()
    gc.freeze()


def compile_codecs() -> None:
    """Compile the codecs of ApiVersions, Metadata and ListOffsets, at the versions of today's brokers."""
    from penstock.client.cluster.negotiation import FIRST_ASKED_VERSION
    from penstock.protocol.api import API_TABLE, ApiKey
    from penstock.protocol.codec import codec_for

    for key in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.LIST_OFFSETS):
        api = API_TABLE[key]
        version = FIRST_ASKED_VERSION if key == ApiKey.API_VERSIONS else api.stable_versions[1]
        for message_class in (api.request, api.response):
            codec = codec_for(message_class, version)
            codec.decode(codec.encode(message_class()))


def received(connection: socket.socket) -> ForkRequest | None:
    """Return a client's request, or None if it is malformed or comes from another user's process."""
    import marshal

    streams: list[int] = []
    connection.settimeout(PATIENCE_S)
    try:
        if is_own(connection):
            size, streams, _, _ = socket.recv_fds(connection, 4, len(STREAMS))
            length = int.from_bytes(size, "big")
            body = bytearray()
            while len(body) < length <= REQUEST_BYTES_MAX:
                chunk = connection.recv(length - len(body))
                if not chunk:
                    break
                body += chunk
            if len(size) == 4 and len(streams) == len(STREAMS) and len(body) == length:
                arguments, environment, directory = marshal.loads(body)
                return ForkRequest(connection, list(arguments), dict(environment), bytes(directory), streams)
    except (OSError, EOFError, ValueError, TypeError):
        pass
    for stream in streams:
        os.close(stream)
    connection.close()
    return None


def suits(request: ForkRequest, module: str, own: dict[bytes, bytes], directory: bytes) -> bool:
    """Return True if a fork of this process is equivalent to a new Python process for `request`."""

    def common(environment: dict[bytes, bytes]) -> dict[bytes, bytes]:
        return {name: value for name, value in environment.items() if name not in OWN_NAMES}

    return (
        request.arguments == ["-m", module]
        and request.directory == directory
        and common(request.environment) == common(own)
        and threading.active_count() == 1
    )


def close(request: ForkRequest) -> None:
    """Close this process's copies of a request's connection and streams."""
    request.connection.close()
    for stream in request.streams:
        os.close(stream)


def run(request: ForkRequest, module: str) -> NoReturn:
    """Run a request in this forked process: its streams, environment, main module. Does not return."""
    import runpy

    connection = request.connection
    try:
        connection.sendall(READY)
        if connection.recv(1) != READY:
            os._exit(1)
        end_with(connection)
        client = [connection.detach()]  # open for as long as this process lives
    except OSError:
        os._exit(1)
    os.register_at_fork(after_in_child=lambda: leave(client))
    for stream, number in zip(request.streams, STREAMS, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    for name in OWN_NAMES:  # all others are equal, but for what imports have added
        os.environb.pop(name, None)
        if name in request.environment:
            os.environb[name] = request.environment[name]
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # the processes must not draw the same numbers
    sys.argv[:] = [""]  # the path of the module takes this place
    code: object = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        raise
    finally:
        if client:
            os.write(client[0], bytes([code & 0xFF if isinstance(code, int) else 1]))
    sys.exit(0)


def leave(client: list[int]) -> None:
    """Close the client's connection in a process that the stream's process forks, which may outlive it."""
    if client:
        os.close(client.pop())


def end_with(connection: socket.socket) -> None:
    """Make SIGTERM end this process when the client at the other end of `connection` ends.

    Raises:
        OSError: the client has ended already.
    """
    import fcntl

    connection.settimeout(None)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, _F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    if poll.poll(0):
        raise ConnectionResetError("the client has ended")


def main(jvm: int, module: str = RUNNER) -> None:
    """Serve fork requests; in each forked process, run the request for which it was forked."""
    try:
        request = serve(jvm, module)
    except OSError:
        return  # another server is there, or the JVM is not any more
    if request is not None:
        run(request, module)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:3])
