"""A fast replacement for the program ``penstock`` in tests of documentation pages.

It is forked from a server that has already imported the package. A page runs up to eighty commands, and
starting Python for each takes 0.2 CPU seconds, mostly for imports. A forked command has its own arguments,
environment, working directory and streams, the exit status of the real program, and gets the shell's signals.
Pages marked slow run the installed program, as `make wheels` and `make first-hour` do.

    python tests/forked_commands.py FOLDER

writes the program into FOLDER, prints a line when it can be used, and serves it until this process is killed.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path

from penstock.spark.runtime.fork_server import ForkRequest, close, fork, received, take_ended

USED_BY_ALL = (
    "difflib",
    "encodings.idna",
    "json",
    "ssl",
    "penstock.cli.commands",
    "penstock.cli.listing",
    "penstock.cli.times",
    "penstock.client.blocking.admin",
    "penstock.client.blocking.consumer",
    "penstock.client.blocking.producer",
    "penstock.client.admin.admin",
    "penstock.client.fetch.consumer",
    "penstock.client.produce.producer",
    "penstock.protocol.compiler.compile",
)
USED_BY = {
    "land": (
        "deltalake",
        "pyiceberg.catalog.sql",
        "pyiceberg.io.pyarrow",
        "penstock.lake.lander",
        "penstock.lake.kinds.delta",
        "penstock.lake.kinds.iceberg",
    ),
    "sql": ("duckdb", "penstock.queries.asking"),
    "csv": ("pyarrow.csv", "penstock.tables.topics"),
    "parquet": ("pyarrow.parquet", "penstock.tables.topics"),
}
"""A dict from a word to the modules that only commands with this word import.

The server imports them at the first such command.
"""

PROGRAM = """#!{python} -IS
import _signal, _socket, marshal, posix, sys
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect({address!r})
body = marshal.dumps((sys.argv[1:], posix.environ, posix.getcwdb()))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
connection.sendmsg([len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
connection.sendall(body)
def answer():
    return int.from_bytes(connection.recv(4), "big")
command = answer()
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    if _signal.getsignal(number) != _signal.SIG_IGN:
        _signal.signal(number, lambda number, frame: posix.kill(command, number))
status = answer()
if posix.WIFSIGNALED(status):
    _signal.signal(posix.WTERMSIG(status), _signal.SIG_DFL)
    posix.kill(posix.getpid(), posix.WTERMSIG(status))
posix._exit(posix.WEXITSTATUS(status))
"""


def serve(folder: Path) -> ForkRequest:
    """Serve requests to run commands.

    The function returns only in a forked process, with the command's arguments and streams.
    """
    address = f"\0penstock-commands-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(64)
        program = folder / "penstock"
        program.write_text(PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o755)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, take_ended)
        while True:
            request = received(listener.accept()[0])
            if request is None:
                continue
            used = [USED_BY_ALL, *(USED_BY[word] for word in USED_BY.keys() & set(request.arguments))]
            for name in itertools.chain(*used):
                import_module(name)
            if fork() == 0:  # a process that waits for the command
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                command = fork()
                if command == 0:
                    return request
                request.connection.settimeout(None)
                request.connection.sendall(command.to_bytes(4, "big"))
                for stream in request.streams:
                    os.close(stream)
                request.connection.sendall(os.waitpid(command, 0)[1].to_bytes(4, "big"))
                os._exit(0)
            close(request)


def become(request: ForkRequest) -> None:
    """Give this forked process the streams, directory, environment and arguments of a command."""
    for number, stream in enumerate(request.streams):
        os.dup2(stream, number)
    close(request)
    os.chdir(request.directory)
    os.environb.clear()
    os.environb.update(request.environment)
    sys.argv[:] = ["penstock", *request.arguments]
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no threads in a process that forks
    become(serve(Path(sys.argv[1])))
    from penstock.cli import main

    sys.exit(main())
