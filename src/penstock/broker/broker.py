"""`Broker`: a Kafka broker inside this process, on a thread with an event loop of its own.

    with Broker() as broker:
        producer = SomeKafkaClient(bootstrap_servers=broker.bootstrap_servers)

It listens on a real socket and speaks the real protocol, so any client can use it. Started, stopped and
started again it keeps its port and its data, also those in memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.broker.config import BrokerConfig
from penstock.broker.listeners import listening_at
from penstock.broker.server import serving
from penstock.broker.storage import MemoryStore, open_store
from penstock.clock import Clock, SystemClock
from penstock.model import setting_text

if TYPE_CHECKING:
    import os

    from penstock.broker.connection import Connection
    from penstock.broker.server import Server
    from penstock.broker.storage import LogStore


class Broker:
    """One broker on one address.

    `data_dir` is a directory in Kafka's layout, made if need be; None keeps everything in memory.
    `port` 0 takes a free port. Settings come as `config` under Kafka's dotted names, or as keyword
    arguments with underscores: ``Broker(num_partitions=3)``. `as_version` is a release of Apache Kafka to
    behave as, such as ``"0.8.2"`` or ``"3.9"``; without it the broker offers everything it has.
    `listen_07` is the port of a second listener, for Kafka 0.7, whose topics are its own; 0 takes a free one.

    Raises:
        ConfigError: a setting is unknown (the nearest one is suggested), its value does not fit, or there
            is no such release.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        as_version: str | None = None,
        listen_07: int | None = None,
        **settings: object,
    ) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        texts = {name: setting_text(value) for name, value in {**(config or {}), **named}.items()}
        if data_dir is not None:
            texts["log.dirs"] = str(data_dir)
        if listen_07 is not None:
            texts["penstock.0.7.port"] = str(listen_07)
        self.config = BrokerConfig(texts, as_version)
        if ("listeners" in texts or "port" in texts) and (host, port) == ("127.0.0.1", 0):
            host, port = listening_at(self.config)
        self.host = host
        self.clock: Clock = clock or SystemClock()
        self._port = port
        self.server: Server | None = None
        """What serves while it runs. It belongs to the broker's thread: for looking, not for touching."""
        self._address07: tuple[str, int] | None = None
        self._memory: MemoryStore | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    # --- where it is -------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port it listens on; the one asked for as long as it has not been started."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """What a client needs to know: ``host:port``."""
        return _reachable(self.host, self._port)

    @property
    def address_07(self) -> str | None:
        """``host:port`` of the listener for Kafka 0.7; None where there is none, or not yet."""
        return None if self._address07 is None else _reachable(*self._address07)

    @property
    def data_dir(self) -> str | None:
        return self.config.data_dir

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        return f"<Broker {self.bootstrap_servers} {state}, data in {self.data_dir or 'memory'}>"

    # --- starting and stopping ---------------------------------------------------------------------------

    def start(self) -> Broker:
        """Start serving; return when clients can connect. Does nothing if it runs already.

        Raises:
            NetworkError: the address cannot be listened on.
            StorageError: the data directory cannot be used, or another broker uses it.
        """
        if self._thread is not None:
            return self
        self._started.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-broker-{self._port}", daemon=True)
        self._thread.start()
        self._started.wait()
        self._raise_failure()
        return self

    def close(self) -> None:
        """Stop serving, force the data to disk, let go of port and directory. Harmless when stopped.

        Raises:
            StorageError: the data could not be forced to disk.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        loop, stopping = self._loop, self._stopping
        assert loop is not None
        assert stopping is not None
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise here what has ended the thread, if anything has."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._thread = None
            raise failure

    stop = close

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Broker:
        return await asyncio.get_running_loop().run_in_executor(None, self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    # --- the thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            # By name, since a policy may offer a loop that has no sendfile.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        store = self._open_store()
        async with serving(self.config, store, self.clock, self.host, self._port, self._connect()) as server:
            self._port = server.address[1]
            self._address07 = server.address07
            if server.address07 is not None:
                self.config.settings["penstock.0.7.port"] = str(server.address07[1])
            self.server = server
            self._started.set()
            await self._stopping.wait()
            self.server = None

    def _connect(self) -> Callable[[Server], Connection] | None:
        """What makes the object for a new connection, if not the usual. `penstock.testing` has its own."""
        return None

    def _open_store(self) -> LogStore:
        if self.config.data_dir is not None:
            return open_store(self.config, self.clock)
        if self._memory is None:
            self._memory = MemoryStore(self.config.node_id, self.clock)
        return self._memory


def _reachable(host: str, port: int) -> str:
    """The address for a client on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
