"""A Unix socket on which another process calls methods of a `Cluster`, such as `kill`.

Each call is one line of JSON. The socket is in a directory that only its user can enter and read; nothing
listens on a network. The socket's name is the port of the first broker, so that the command line finds it. In
the protocol, such a method is called a lever.

A request is ``{"lever": "kill", "with": {"node": 2}}``. Its answer is ``{"value": null}``, or has an error:
``{"error": "why"}``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.common.logs import logger_named
from penstock.common.threads import in_own_thread
from penstock.errors import ConfigError, PenstockError, StorageError

if TYPE_CHECKING:
    from penstock.broker.cluster import Cluster

logger = logger_named("penstock.broker")

REQUEST_BYTES_MAX = 4096
"""The maximum length of a request line in bytes: names of topics and groups have at most a few hundred
characters."""

CONNECTIONS_MAX = 8
"""The maximum number of open connections."""

IDLE_S = 10.0
"""The seconds that a connection may take to send its line."""

LEVERS: Mapping[str, Mapping[str, type]] = {
    "nodes": {},
    "start": {"node": int},
    "stop": {"node": int},
    "kill": {"node": int, "fence": bool},
    "restart": {"node": int, "kill": bool},
    "fence": {"node": int},
    "pause": {"node": int},
    "resume": {"node": int},
    "cut_link": {"one": int, "other": int},
    "cut_off": {"node": int},
    "cut_from_controller": {"node": int},
    "cut_from_clients": {"node": int},
    "slow": {"one": int, "other": int, "ms": int},
    "heal": {"node": int},
    "freeze_follower": {"node": int},
    "thaw_follower": {"node": int},
    "shrink_isr": {"topic": str, "partition": int, "node": int},
    "move_leader": {"topic": str, "partition": int, "node": int},
    "elect": {"topic": str, "partition": int, "unclean": bool},
    "move_coordinator": {"group": str, "transactional_id": str, "node": int},
    "stop_clock": {},
    "start_clock": {},
    "advance": {"ms": int},
}
"""The methods of `Cluster` that can be called, each with the names and types of its arguments."""

ADVANCE_MS_MAX = 366 * 24 * 3600 * 1000
"""The maximum time in ms that one call can advance the clock: a year."""


ACCEPTING_TURNS = 5
"""The number of event-loop turns to wait before the socket is closed. By then the path is removed, and
each accepted connection has its task. Without the wait, asyncio would leave a connection open that it
accepts while closing the server.
"""


def has_sockets() -> bool:
    """Return True if asyncio has Unix sockets on this system; it has none on Windows."""
    return hasattr(asyncio, "start_unix_server")


def directory() -> str:
    """Return the sockets' directory: below ``XDG_RUNTIME_DIR``, or a temporary one with the user's id."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "penstock")
    return os.path.join(tempfile.gettempdir(), f"penstock-{os.getuid()}")


def socket_path(port: int) -> str:
    """Return the path of the socket for the cluster whose first broker has this port."""
    return os.path.join(directory(), f"{port}.levers")


def check_is_private(path: str) -> None:
    """Raise an error for a directory that another user created or could change.

    Raises:
        StorageError: `path` is no directory, belongs to another user, or is open to others.
    """
    found = os.lstat(path)
    is_private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    if not is_private or found.st_uid != os.getuid():
        raise StorageError(f"{path} is not a directory of this user alone; remove it, or set XDG_RUNTIME_DIR")


@asynccontextmanager
async def serving_levers(cluster: Cluster, port: int) -> AsyncIterator[str | None]:
    """Let other processes call methods of a cluster for the length of a block; yield the socket's path.

    Yields None, and runs the block without a socket, if this system has no Unix sockets or the directory is
    not private.
    """
    path = None
    if has_sockets():
        path = socket_path(port)
        try:
            os.makedirs(directory(), mode=0o700, exist_ok=True)
            check_is_private(directory())
            with suppress(FileNotFoundError):
                os.unlink(path)  # left by a process that was killed, since this process has the port
            serving = _Serving(cluster)
            server = await asyncio.start_unix_server(serving.accept, path=path, limit=REQUEST_BYTES_MAX)
            os.chmod(path, 0o600)
        except (OSError, StorageError) as error:
            logger.warning("the levers of the cluster cannot be moved from outside: %s", error)
            path = None
    if path is None:
        yield None
        return
    try:
        yield path
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)
        for _ in range(ACCEPTING_TURNS):
            await asyncio.sleep(0)
        server.close()
        await serving.end()


class _Serving:
    """Serves the connections on which other processes call methods of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._count = 0
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of its own, which may be cancelled before it begins."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open[task] = writer
        task.add_done_callback(lambda done: self._open.pop(done))

    async def end(self) -> None:
        """Abort all connections."""
        tasks = list(self._open)
        for task, writer in self._open.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        try:
            if self._count > CONNECTIONS_MAX:
                answer: dict[str, Any] = {"error": "too many commands at once; try again"}
            else:
                answer = await self._answer(reader)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except OSError as error:
            logger.info("a lever was not answered: %s", error)
        except asyncio.CancelledError:
            pass  # the cluster ends, and unfinished requests get no answer
        finally:
            self._count -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        try:
            async with asyncio.timeout(IDLE_S):
                line = await reader.readuntil(b"\n")
            name, arguments = read_request(line)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return {
                "error": f"one line of at most {REQUEST_BYTES_MAX} bytes is needed, within {IDLE_S:.0f} s"
            }
        except ConfigError as error:
            return {"error": str(error)}
        logger.info("lever %s %s", name, arguments)
        lever = getattr(self._cluster, name)
        try:
            inspect.signature(lever).bind(**arguments)
        except TypeError as error:
            return {"error": f"{name}: {error}"}
        try:
            # In a thread: levers wait for what this loop does. Those of its executor force logs to disk.
            value = await in_own_thread(partial(lever, **arguments))
        except PenstockError as error:
            return {"error": str(error)}
        except (KeyError, IndexError):
            return {"error": _missing(arguments)}
        except Exception as error:
            logger.exception("lever %s has failed", name)
            return {"error": f"{name} has failed: {type(error).__name__}: {error}"}
        return {"value": [each._asdict() for each in value] if isinstance(value, list) else value_of(value)}


def value_of(value: object) -> int | None:
    """Return a method's result for the JSON answer: a number (broker id or count), or None for all others."""
    return value if isinstance(value, int) else None


def read_request(line: bytes) -> tuple[str, dict[str, Any]]:
    """Parse a request, one line of JSON; return the name of the method and its arguments.

    Raises:
        ConfigError: the line is no request, the method cannot be called, or an argument is unknown or of
        another
            type.
    """
    try:
        request = json.loads(line)
        name, arguments = request["lever"], request.get("with", {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError('a request is {"lever": NAME, "with": {…}}') from None
    wanted = LEVERS.get(name) if isinstance(name, str) else None
    if wanted is None:
        raise ConfigError(f"there is no lever {name!r}; there are {', '.join(LEVERS)}")
    if not isinstance(arguments, dict):
        raise ConfigError(f"the arguments of {name} are an object, as in {{'node': 1}}")
    for argument, value in arguments.items():
        kind = wanted.get(argument)
        if kind is None or type(value) is not kind:
            raise ConfigError(f"{name} does not take {argument}={value!r}")
    if not 0 <= arguments.get("ms", 0) <= ADVANCE_MS_MAX:
        raise ConfigError(f"{name} takes 0 to {ADVANCE_MS_MAX} ms")
    if name == "start" and "node" not in arguments:
        raise ConfigError("start needs a node: the cluster itself is running")
    if arguments.get("partition", 0) < 0:
        raise ConfigError(f"{name} does not take partition={arguments['partition']}: they begin with 0")
    return name, arguments


def _missing(arguments: Mapping[str, object]) -> str:
    """Return an error message that names the partition, group or transactional id that does not exist."""
    if "topic" in arguments:
        return f"there is no partition {arguments['topic']}-{arguments.get('partition', 0)}"
    name = "group" if "group" in arguments else "transactional_id"
    noun = name.replace("_", " ")
    return f"there is no {noun} {arguments.get(name)!r} yet, and so no coordinator"
