"""Fixtures that many tests share: a Penstock broker in memory; each test creates its own topics."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from compiled_first import compile_first
from parts_of_tests import in_parts
from penstock import Admin, Broker

# How long an example takes says more about what else the machine does than about the code.
# `make soak` draws many more examples of each property than `make test`.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("untimed", UNTIMED, max_examples=40)
settings.register_profile("soak", UNTIMED, max_examples=1000)
settings.load_profile("untimed")

# A shell without a terminal starts what runs in the background with Ctrl-C ignored, and so do its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing that is collected goes away before the end: neither modules nor items of tests are garbage, and to
# look through half a million of them again and again took a tenth of the CPU time of all tests.
gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile all tests before several processes of `make test` collect them."""
    here = Path(__file__).parent
    if [Path(each).resolve() for each in config.args] == [here]:
        compile_first(here, here / "compat")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, and run it less often.

    Most objects of tests are freed by reference counting; cycles may remain for a while.
    """
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)
    gc.enable()


# Files that take longest, the longest first. Run by file in several processes, they begin first, so that no
# process is left alone with one at the end.
LONG_FILES = (
    "test_documents.py",
    "test_differential.py",
    "test_secured_kafka.py",
    "test_spark_connector.py",
    "test_groups_client.py",
    "test_java_messages.py",
    "test_takeover.py",
    "test_gateway.py",
    "test_handover.py",
    "test_compiled.py",
    "test_run.py",
    "test_spark_cluster.py",
    "test_java_tools.py",
    "test_programs.py",
    "test_java_streams.py",
    "test_site.py",
    "test_spark_kills.py",
    "test_java_libraries.py",
    "test_java_connect.py",
)


@pytest.hookimpl(trylast=True)  # when those that are not chosen are gone
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests so that several processes end at the same time.

    With `--no-loadscope-reorder`, long files come first, then those with the most tests, as xdist does. With
    `--dist worksteal`, each process gets an equal part of the list. When its part is done, it takes tests
    from the end of another part. So slow tests, and those that must stay in one process, are put at the start
    of a part.
    """
    if not config.getoption("loadscopereorder", True):
        sizes = Counter(item.path for item in items)
        places = {name: place for place, name in enumerate(LONG_FILES)}
        items.sort(key=lambda item: (places.get(item.path.name, len(places)), -sizes[item.path]))
    elif (processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 1:
        items[:] = in_parts(items, processes)


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """Yield the address of a broker."""
    with Broker(log_retention_ms=-1) as broker:  # records of these tests are old
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as admin:
        yield admin


@pytest.fixture(scope="session")
def new_topic(admin: Admin) -> Callable[..., str]:
    """Return a function that creates a topic with a unique name."""
    numbers = itertools.count()

    def create(partitions: int = 1, **config: str) -> str:
        name = f"topic-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topic(name, partitions, config=settings)
        return name

    return create
