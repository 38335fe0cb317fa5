"""Fixtures for pytest, found by itself once the package is installed.

`kafka_broker` is a broker of the test's own, `kafka_topic` the name of a topic on it; `kafka_cluster` are
three brokers with replicas. `kafka_session_broker` serves the whole run and `kafka_session_topic` is a topic
on that one, new for each test. ``--penstock-containers`` runs suites that are written for Testcontainers'
Kafka or for pytest-kafka. Nothing of the broker is imported before a test asks for one.

The report of a test that fails has a section for each broker or cluster that is the value of one of its
fixtures, and for each one whose ``with`` block the exception has left: `penstock.Broker` and `Cluster` too.
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
    """Finds the modules of this package before pytest does.

    pytest parses every module of a package that has a plugin, to rewrite its assert statements. Here that
    would happen in the threads of brokers and clients, which import what they need: until Python 3.11.8 and
    3.12.2 two threads that parse fail with a SystemError ("AST constructor recursion depth mismatch",
    https://github.com/python/cpython/issues/106905).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module as Python finds it by itself; None where it is of another package."""
        if not fullname.startswith("penstock."):
            return None
        return PathFinder.find_spec(fullname, path, target)


sys.meta_path.insert(0, AsWritten())

LOG_LINES_MAX = 30


class LogTail(logging.Handler):
    """Keeps the newest lines that brokers and clients log during a test."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record as text."""
        self.lines.append(self.format(record))


log_tail = LogTail()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--penstock-containers``, and the setting of that name for files of configuration."""
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
    """Put the stand-ins in place, before the first conftest.py imports what they stand for."""
    if early_config.known_args_namespace.penstock_containers or early_config.getini("penstock_containers"):
        from penstock.testing.containers import imports

        early_config.add_cleanup(functools.partial(imports.remove, imports.install()))


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and keep what is logged."""
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
    """Leave the logger as it was."""
    logger = logging.getLogger("penstock")
    logger.removeHandler(log_tail)
    if log_tail.handle in logs.taps:
        logs.taps.remove(log_tail.handle)
        logger.setLevel(logging.NOTSET)
    endings.watchers.remove(ended.note)


def pytest_runtest_logstart() -> None:
    """Begin a test: what was logged before is another's."""
    log_tail.lines.clear()
    ended.reports.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that is marked with chaos many times."""
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
    """Put faults into the brokers of a test that is marked with chaos, while its function runs."""
    if pyfuncitem.get_closest_marker("chaos") is None:
        return (yield)
    from penstock.testing.chaos.pytest_items import called

    with called(pyfuncitem):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what brokers hold to the report of a test that has failed."""
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
    """Settings of all brokers, as keywords of `KafkaBroker`. Override it in conftest.py to have others."""
    return {}


@pytest.fixture
def kafka_broker(
    request: pytest.FixtureRequest, kafka_settings: dict[str, object]
) -> Iterator[KafkaBroker | PlayedCluster]:
    """A broker for this test alone; ``@pytest.mark.kafka(num_partitions=3)`` sets it up.

    ``@pytest.mark.kafka(recording="orders.rec")`` plays a recording beside the test module instead: the test
    fails where the application asks for what was not recorded. ``otherwise="broker"`` passes that on.
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
    """A cluster of three for this test alone; ``@pytest.mark.kafka(brokers=5)`` sets it up."""
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
    """A history that records this test's clients; with a chaos mark it has the brokers, and is checked."""
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
    """Return the run that a test with a chaos mark is in: its plan, its history, and `paused`."""
    from penstock.testing.chaos.pytest_items import RUN

    if request.node.get_closest_marker("chaos") is None:
        raise pytest.UsageError("kafka_chaos is for tests that are marked with chaos")
    run: ChaosRun = request.node.stash[RUN]
    return run


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_settings: dict[str, object]) -> Iterator[KafkaBroker]:
    """One broker for the whole run."""
    from penstock.broker.broker import KafkaBroker

    with KafkaBroker(**kafka_settings) as broker:  # type: ignore[arg-type]
        yield broker


@pytest.fixture
def kafka_session_topic(kafka_session_broker: KafkaBroker) -> Iterator[str]:
    """The name of a new topic on `kafka_session_broker`; faults that the test leaves behind are cleared."""
    yield kafka_session_broker.create_topic()
    kafka_session_broker.faults.clear()
