"""The process of ``penstock broker``: settings from files and arguments, logging, signals, shutdown."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.config.values import BrokerConfig, log_unheeded
from penstock.broker.handlers import import_common
from penstock.broker.metadata.stores import open_store
from penstock.broker.network.listeners import listeners_of, listening_at
from penstock.broker.network.serving import serving
from penstock.clock import SystemClock
from penstock.common.listening.accepting import raise_descriptor_limit
from penstock.common.listening.serving_thread import run_to_the_end
from penstock.common.logs import PrintableFormatter, logger_named
from penstock.common.operating_system import on_signal
from penstock.printable import printable
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.broker.parent_process import ParentProcess

logger = logger_named("penstock.broker")


class Ready(NamedTuple):
    """A broker process's announcement that clients can connect. `place` describes where the data are.

    `port` is the port of the first broker.
    """

    bootstrap_servers: str
    port: int
    cluster_id: str
    who: str
    place: str

    def line(self) -> str:
        """Return a line for people: the broker, its addresses, and the location of its data."""
        return f"penstock {self.who} listening on {self.bootstrap_servers}, data in {self.place}"

    def json(self) -> str:
        """Return a JSON object for programs, on one line."""
        import json

        return json.dumps(
            {
                "bootstrap_servers": self.bootstrap_servers,
                "port": self.port,
                "pid": os.getpid(),
                "cluster_id": self.cluster_id,
                "version": __version__,
            }
        )


def run_broker(
    *,
    data_dir: str | None = None,
    host: str | None = None,
    port: int | None = None,
    config: Mapping[str, str] | None = None,
    as_version: str | None = None,
    config_file: str | None = None,
    for_tests: bool = False,
    announce: Callable[[Ready], object] | None = None,
) -> int:
    """Run a broker or a cluster until SIGTERM or SIGINT; return the exit code 0.

    `config_file` is a ``server.properties``; `config` and the other arguments override it. Without `host` and
    `port`, those in the setting `listeners` apply. When clients can connect, one line is announced (by
    default printed): ``penstock broker 1 listening on 127.0.0.1:9092, data in DIR``. `for_tests` takes a free
    port unless one is set, announces in JSON, logs warnings only and ends with the parent process.

    Raises:
        ConfigError: the value of a setting does not fit. Unknown settings are ignored, and logged.
        NetworkError: the address cannot be listened on.
        StorageError: the data directory cannot be used, or another broker uses it.

    The process's soft limit of open files is raised towards the hard one. Where a listener has SASL, a JAAS
    file that the environment variable KAFKA_OPTS names is read (`penstock.broker.security.login_file`).
    """
    log_to_stderr()
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    if for_tests:
        # A parent that does not read our standard error must not stop us with a full pipe.
        logging.getLogger("penstock").setLevel(logging.WARNING)
        texts["group.initial.rebalance.delay.ms"] = "0"
    if config_file is not None:
        from penstock.broker.config.server_properties import read_properties

        reading = read_properties(config_file)
        texts |= reading.settings
        places = {name: place for name, place in reading.places.items() if name not in (config or {})}
    texts |= config or {}
    if data_dir is not None:
        texts["log.dirs"] = data_dir
    settings = BrokerConfig(_with_login_file(texts, as_version), as_version)
    log_unheeded(settings, places)
    raise_descriptor_limit()
    listed_host, listed_port = listening_at(settings)
    host = listed_host if host is None else host
    if port is None:
        is_set = "listeners" in texts or "port" in texts
        port = 0 if for_tests and not is_set else listed_port
    announce = announce or (_print_json if for_tests else _print_line)
    parent = _parent() if for_tests else None
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        if settings.integer("penstock.brokers") > 1:
            serving_all = serve_cluster(settings, host, port, announce, parent)
            run_to_the_end(runner, serving_all)
        else:
            run_to_the_end(runner, serve(settings, host, port, announce, parent))
    return 0


def _with_login_file(texts: dict[str, str], as_version: str | None) -> dict[str, str]:
    """Return the settings, with those that the JAAS file in KAFKA_OPTS implies."""
    options = os.environ.get("KAFKA_OPTS", "")
    if "java.security.auth.login.config" not in options:
        return texts
    from penstock.broker.security.login_file import login_settings

    listeners = listeners_of(BrokerConfig(texts, as_version))
    return texts | login_settings(options, listeners, texts)


async def serve_cluster(
    config: BrokerConfig,
    host: str,
    port: int,
    announce: Callable[[Ready], object],
    parent: ParentProcess | None = None,
) -> None:
    """Serve a cluster of `penstock.brokers` brokers on the running loop until SIGTERM or SIGINT.

    The brokers' listeners take consecutive ports from `port` on. The end of the process `parent`, if one is
    given, stops the cluster, too.

    Raises:
        ConfigError, NetworkError, StorageError: as `run_broker`.
    """
    from penstock.broker.cluster import Cluster
    from penstock.broker.lever_socket import serving_levers  # most processes are one broker

    stopping = _stopping(parent)
    count = config.integer("penstock.brokers")
    texts = {name: text for name, text in config.settings.items() if name not in _OF_ONE_BROKER}
    listeners = len(listeners_of(config))
    ports = [port + each * listeners if port else 0 for each in range(count)]
    release = None if config.release is None else config.release.name
    cluster = Cluster(count, config.data_dir, host, ports, config=texts, as_version=release)
    async with cluster.serving(), serving_levers(cluster, cluster.ports[0]):
        _settle_soon()
        place = cluster.data_dir or "memory"
        cluster_id = cluster.cluster_id
        announce(Ready(cluster.bootstrap_servers, cluster.ports[0], cluster_id, f"cluster of {count}", place))
        await stopping.wait()
    logger.info("stopped in order")


_OF_ONE_BROKER = ("penstock.brokers", "log.dirs", "log.dir", "port")
"""The settings that are not passed on to the single brokers of a cluster: the number of brokers, and
the port and directories of one broker.
"""


async def serve(
    config: BrokerConfig,
    host: str,
    port: int,
    announce: Callable[[Ready], object],
    parent: ParentProcess | None = None,
) -> None:
    """Serve on the running loop until SIGTERM or SIGINT, or `parent` has ended; then shut down cleanly.

    Raises:
        NetworkError, StorageError: as `run_broker`.
    """
    stopping = _stopping(parent)
    clock = SystemClock()
    store = open_store(config, clock)
    async with serving(config, store, clock, host, port) as server:
        _settle_soon()
        node_id, place = server.node.node_id, store.describe()
        profile = f", as Kafka {config.release.name}" if config.release is not None else ""
        if not store.was_clean:
            logger.warning("the last run did not end in order: logs were checked")
        if server.metrics_port is not None:
            logger.info(
                "metrics at http://%s:%d/metrics", config.text("penstock.metrics.host"), server.metrics_port
            )
        if server.address07 is not None:
            logger.info("Kafka 0.7 at %s:%d", *server.address07)
        cluster_id = server.node.cluster.cluster_id
        announce(
            Ready(server.bootstrap, server.address[1], cluster_id, f"broker {node_id}", f"{place}{profile}")
        )
        await stopping.wait()
    logger.info("stopped in order")


SETTLING_S = 0.25
"""The seconds between the start of listening and the postponed part of the start-up work, so that the
first clients do not wait for that work."""


def _settle_soon() -> None:
    """Schedule start-up work after `SETTLING_S`: import usual handlers, turn the garbage collector on.

    `penstock.broker.command_line` stopped the collector.
    """
    asyncio.get_running_loop().call_later(SETTLING_S, _settle)


def _settle() -> None:
    import_common()
    # Objects that exist by now stay: the collector need not visit them again and again.
    gc.collect()
    gc.freeze()
    gc.enable()


def _stopping(parent: ParentProcess | None) -> asyncio.Event:
    """Return an asyncio event that SIGTERM, SIGINT and the end of the parent process set."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        on_signal(loop, number, stopping.set)
    if parent is not None:
        parent.when_ended(loop, stopping.set)
    return stopping


def _parent() -> ParentProcess:
    from penstock.broker.parent_process import ParentProcess  # only brokers of tests watch a parent

    return ParentProcess()


def log_to_stderr() -> None:
    """Log to standard error, a line for each event: time (UTC), level, message.

    Does nothing if logging has been set up already.
    """
    root = logging.getLogger("penstock")
    if root.handlers or logging.getLogger().handlers:
        return
    formatter = PrintableFormatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    # asyncio warns of each write to a closed connection; the broker has logged the close.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    root.setLevel(logging.INFO)


def _print_line(ready: Ready) -> None:
    print(printable(ready.line()), flush=True)


def _print_json(ready: Ready) -> None:
    print(ready.json(), flush=True)
