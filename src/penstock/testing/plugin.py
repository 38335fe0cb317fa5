"""The pytest plugin with Penstock's fixtures, which pytest loads automatically once the package is installed.

`kafka_broker` is a broker for one test, `kafka_topic` the name of a topic on that broker, and `kafka_cluster`
a cluster of three brokers with replicas. `kafka_session_broker` is one broker for the whole pytest session,
and `kafka_session_topic` a new topic on it for each test. ``--penstock-containers`` runs test suites that are
written for Testcontainers' Kafka or for pytest-kafka. The broker is imported only when a test uses one.

The report of a failing test has a section for each broker or cluster among its fixtures, and for each one
whose ``with`` block an exception has left, including `penstock.Broker` and `Cluster`.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from penstock.common import logs
from penstock.common.listening import endings
from penstock.testing import ended

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster
    from penstock.testing.chaos.history import History
    from penstock.testing.chaos.runs import ChaosRun
    from penstock.testing.replay.cluster import PlayedCluster


class AsWritten(MetaPathFinder):
    """An import finder that imports Penstock's modules unchanged, without pytest's rewriting of assertions.

    pytest parses every module of a package that has a plugin, to rewrite its assert statements. With
    Penstock, this would happen in the threads of brokers and clients, which import modules on demand. Before
    Python 3.11.8 and 3.12.2, two threads that parse at a time fail with a SystemError ("AST constructor
    recursion depth mismatch", https://github.com/python/cpython/issues/106905).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Python's own spec of a module of Penstock, or None for modules of other packages."""
        if not fullname.startswith("penstock."):
            return None
        return PathFinder.find_spec(fullname, path, target)


sys.meta_path.insert(0, AsWritten())

LOG_LINES_MAX = 30


class LogTail(logging.Handler):
    """A log handler that keeps the newest lines that brokers and clients log during a test."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Store one log record as text, and drop the oldest if there are too many."""
        self.lines.append(self.format(record))


log_tail = LogTail()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options ``--penstock-containers`` (also a setting of pytest.ini) and ``--chaos-replay``."""
    text = "let testcontainers.kafka and pytest_kafka be Penstock's, which need neither Docker nor Java"
    parser.getgroup("penstock").addoption(
        "--penstock-containers", action="store_true", default=None, help=text
    )
    parser.addini("penstock_containers", type="bool", default=False, help=text)
    parser.getgroup("penstock").addoption(
        "--chaos-replay",
        metavar="SEED:RUN[/FAULTS]",
        help="carry out one run only of each test that is marked with chaos, as its report says",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the replacement modules, if they are enabled, before the first conftest.py is imported."""
    if early_config.known_args_namespace.penstock_containers or early_config.getini("penstock_containers"):
        from penstock.testing.containers import imports

        early_config.add_cleanup(functools.partial(imports.remove, imports.install()))


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin's markers, and begin to collect log lines of brokers and clients."""
    logger = logging.getLogger("penstock")
    logger.addHandler(log_tail)
    if logger.level == logging.NOTSET:  # lines of INFO are for the report alone, unless the run asks for them
        logger.setLevel(logs.TAPPED)
        logs.taps.append(log_tail.handle)
    endings.watchers.append(ended.note)
    config.addinivalue_line(
        "markers",
        "kafka(**settings): settings of kafka_broker in this test: keywords of KafkaBroker, or recording=",
    )
    config.addinivalue_line(
        "markers",
        "chaos(seed, runs, faults, **promises): run this test many times, with other faults each time",
    )


def pytest_unconfigure() -> None:
    """Restore the logger to its former state."""
    logger = logging.getLogger("penstock")
    logger.removeHandler(log_tail)
    if log_tail.handle in logs.taps:
        logs.taps.remove(log_tail.handle)
        logger.setLevel(logging.NOTSET)
    endings.watchers.remove(ended.note)


def pytest_runtest_logstart() -> None:
    """Drop the log lines and reports of the previous test."""
    log_tail.lines.clear()
    ended.reports.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with the marker ``chaos`` many times; let pytest run all other tests."""
    mark = item.get_closest_marker("chaos")
    if mark is None:
        return None
    from penstock.testing.chaos.pytest_items import run_item, runs_by_itself

    if runs_by_itself(item):
        return None
    run_item(item, nextitem, mark, item.config.getoption("--chaos-replay"))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Put faults into the brokers of a test with the marker ``chaos`` while its function runs."""
    if pyfuncitem.get_closest_marker("chaos") is None:
        return (yield)
    from penstock.testing.chaos.pytest_items import called

    with called(pyfuncitem):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the contents of the test's brokers to the report of a failed test."""
    report = yield
    if call.excinfo is not None and item.get_closest_marker("chaos") is not None:
        from penstock.testing.chaos.pytest_items import ERROR

        item.stash[ERROR] = call.excinfo.value
    # Where no broker was ever imported, there is none to look at.
    if (
        report.failed
        and call.when != "teardown"
        and "penstock.common.listening.serving_thread" in sys.modules
    ):
        from penstock.testing.report import sections

        report.sections.extend(sections(getattr(item, "funcargs", {}), ended.reports, log_tail.lines))
    return report


@pytest.fixture(scope="session")
def kafka_settings() -> dict[str, object]:
    """Return keyword arguments for every `KafkaBroker` fixture. Override this fixture in conftest.py."""
    return {}


@pytest.fixture
def kafka_broker(
    request: pytest.FixtureRequest, kafka_settings: dict[str, object]
) -> Iterator[KafkaBroker | PlayedCluster]:
    """Yield a broker for one test; ``@pytest.mark.kafka(num_partitions=3)`` passes settings to it.

    ``@pytest.mark.kafka(recording="orders.rec")`` instead replays a recording from the directory of the test
    module: the test fails if the application makes a request that was not recorded. ``otherwise="broker"``
    passes such requests to a broker.
    """
    from penstock.broker.broker import KafkaBroker

    settings = dict(kafka_settings)
    for mark in reversed(list(request.node.iter_markers("kafka"))):
        settings.update(mark.kwargs)
    if "recording" in settings:
        from penstock.testing.replay import Recording

        path = request.path.parent / str(settings["recording"])
        with Recording.load(path).cluster(otherwise=settings.get("otherwise", "error")) as played:  # type: ignore[arg-type]
            yield played
        return
    with KafkaBroker(**settings) as broker:  # type: ignore[arg-type]
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: KafkaBroker) -> str:
    """Return the name of a topic with one partition on `kafka_broker`."""
    return kafka_broker.create_topic()


@pytest.fixture
def kafka_cluster(
    request: pytest.FixtureRequest, kafka_settings: dict[str, object]
) -> Iterator[KafkaCluster]:
    """Yield a cluster of three brokers for one test; ``@pytest.mark.kafka(brokers=5)`` changes the number."""
    from penstock.broker.cluster import KafkaCluster

    settings = dict(kafka_settings)
    for mark in reversed(list(request.node.iter_markers("kafka"))):
        settings.update(mark.kwargs)
    if request.node.get_closest_marker("chaos") is not None:
        from penstock.testing.chaos.runs import CLUSTER_SETTINGS

        settings = {**CLUSTER_SETTINGS, **settings}
    with KafkaCluster(**settings) as cluster:  # type: ignore[arg-type]
        yield cluster


@pytest.fixture
def kafka_history(request: pytest.FixtureRequest) -> Iterator[History]:
    """Yield a history that records the test's clients.

    For a test with the marker ``chaos``, the history is also attached to the test's brokers, and is checked
    at the end.
    """
    if request.node.get_closest_marker("chaos") is not None:
        from penstock.testing.chaos.pytest_items import RUN

        yield request.node.stash[RUN].history
        return
    from penstock.testing.chaos.history import History

    history = History()
    with history.watching():
        yield history


@pytest.fixture
def kafka_chaos(request: pytest.FixtureRequest) -> ChaosRun:
    """Return the current run of a test with the marker ``chaos``: its plan, its history, and `paused`."""
    from penstock.testing.chaos.pytest_items import RUN

    if request.node.get_closest_marker("chaos") is None:
        raise pytest.UsageError("kafka_chaos is for tests that are marked with chaos")
    run: ChaosRun = request.node.stash[RUN]
    return run


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_settings: dict[str, object]) -> Iterator[KafkaBroker]:
    """Yield one broker for the whole pytest session."""
    from penstock.broker.broker import KafkaBroker

    with KafkaBroker(**kafka_settings) as broker:  # type: ignore[arg-type]
        yield broker


@pytest.fixture
def kafka_session_topic(kafka_session_broker: KafkaBroker) -> Iterator[str]:
    """Yield the name of a new topic on `kafka_session_broker`; clear the test's faults afterwards."""
    yield kafka_session_broker.create_topic()
    kafka_session_broker.faults.clear()
