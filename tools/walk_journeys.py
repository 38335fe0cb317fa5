"""Count the modules that each request in ARCHITECTURE.md passes through, and write the counts there.

    python tools/walk_journeys.py

ARCHITECTURE.md describes a few "journeys", such as a Produce. Each is run as a small program. Meanwhile
`sys.setprofile` records the module of every function called in the threads of client and broker. Compiled
kernels are only recorded if Python calls them. If only the broker is recorded, its calls are counted as well.
If only a client is recorded, the modules of `protocol`, which every request uses, are counted separately.
"""

# ruff: noqa: SIM117  the walk begins between the two
from __future__ import annotations

import importlib
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import and_
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = str(ROOT / "src" / "penstock") + os.sep


def homes_of_kernels() -> dict[str, str]:
    """Return a dict from each kernel's C function name to the path of its Python module."""
    text = (ROOT / "native" / "kernels.c").read_text(encoding="utf-8")
    modules = {
        str(path.relative_to(PACKAGE).with_suffix("")).replace("/", "_"): path.relative_to(PACKAGE).as_posix()
        for path in Path(PACKAGE).rglob("*.py")
    }
    names = set(re.findall(r"\b[a-z]\w*?__\w+", text))
    return {name: modules[name.partition("__")[0]] for name in names if name.partition("__")[0] in modules}


HOMES_OF_KERNELS = homes_of_kernels()


class Way:
    """The modules that a recorded request passed through, as paths in the package, and their calls."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.is_walked: Callable[[str], bool] = lambda thread: True
        """A function that returns True for the names of threads whose calls are recorded."""


@contextmanager
def walked() -> Iterator[Way]:
    """Record the calls in this thread and in new threads during a ``with`` block; yield the record."""
    way = Way()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if not way.is_walked(threading.current_thread().name):
            return
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            way.calls[path[len(PACKAGE) :]] += 1
        elif event == "c_call" and (kernel := HOMES_OF_KERNELS.get(getattr(argument, "__name__", ""))):
            way.calls[kernel] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield way
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def below(calls: Counter[str], *beginnings: str) -> Counter[str]:
    """Return the calls of modules whose paths begin with one of the given prefixes."""
    return Counter({path: count for path, count in calls.items() if path.startswith(beginnings)})


def is_of_broker(thread: str) -> bool:
    return thread.startswith("penstock-broker")


def is_of_client(thread: str) -> bool:
    return not is_of_broker(thread)


WALKS = 3
"""The number of times that each request is recorded; calls that do not occur every time are not counted."""

LEISURE_S = 0.05
"""Seconds to wait for a broker's work that continues after the client has the response."""


def each_time(way: Way, go: Callable[[], object]) -> Counter[str]:
    """Run a function several times; return the calls that occurred in every run."""
    ways = []
    for _ in range(WALKS):
        time.sleep(LEISURE_S)
        way.calls = Counter()
        go()
        time.sleep(LEISURE_S)
        ways.append(way.calls)
    way.calls = Counter()  # what threads of brokers call from now on is counted there
    return reduce(and_, ways)


def produce() -> Counter[str]:
    from penstock import Broker, Producer

    with walked() as way, tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"first").result(30)  # makes the topic
            producer.send("orders", b"second").result(30)  # the codecs of all messages are compiled now
            way.is_walked = is_of_broker
            return each_time(way, lambda: producer.send("orders", b"two tickets").result(30))


def fetch_into_arrow() -> Counter[str]:
    from penstock import Broker, Producer, read_topic

    with walked() as way, Broker() as broker:
        with Producer(broker.bootstrap_servers, compression_type="gzip") as producer:
            producer.send("orders", b"two tickets").result(30)
        servers = broker.bootstrap_servers
        read_topic("orders", servers)  # what is compiled and imported once is not a part of the way
        way.is_walked = is_of_client

        def read() -> None:
            assert read_topic("orders", servers).num_rows == 1

        return each_time(way, read)


def transaction() -> Counter[str]:
    from penstock import Broker, Producer

    with walked() as way, Broker() as broker:
        with Producer(broker.bootstrap_servers, transactional_id="shop") as producer:

            def sell() -> None:
                with producer.transaction():
                    producer.send("orders", b"two tickets")

            return below(each_time(way, sell), "client/")


GROUPS = ("broker/groups/", "broker/handlers/join_group", "broker/network/", "broker/requests/")


def join_group() -> Counter[str]:
    from penstock import Broker, Consumer, Producer

    with walked() as way, Broker() as broker, ExitStack() as opened:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"two tickets").result(30)
        consumers = iter(
            [
                opened.enter_context(Consumer(broker.bootstrap_servers, group_id=f"billing-{number}"))
                for number in range(WALKS)
            ]
        )

        def join() -> None:
            consumer = next(consumers)
            consumer.subscribe("orders")
            while not consumer.assignment():
                consumer.poll(100)

        return below(each_time(way, join), *GROUPS)


def follower() -> Counter[str]:
    from penstock import Cluster, Producer

    with walked() as way, Cluster(3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send("orders", b"first").result(30)
            ways = each_time(way, lambda: producer.send("orders", b"two tickets").result(30))
            return below(ways, "broker/")


def table_of_events() -> Counter[str]:
    from penstock import Broker, Event, Producer, read_topic
    from penstock.cloudevents import decode_events

    with Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            event = Event(id="1", source="/shop", type="order", json={"tickets": 2})
            producer.send("orders", event=event)
            producer.send("orders", event=event, mode="structured")
        table = read_topic("orders", broker.bootstrap_servers)
    decode_events(table)  # what is compiled once is not a part of the way

    def decode() -> None:
        assert decode_events(table).num_rows == 2

    with walked() as way:
        return below(each_time(way, decode), "cloudevents/")


def question() -> Counter[str]:
    from penstock import Broker, Producer, sql

    with walked() as way, Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b'{"tickets": 2}').result(30)
        query = 'select tickets from orders where "offset" >= 0'

        def ask() -> None:
            assert sql(query, broker.bootstrap_servers).to_pylist() == [{"tickets": 2}]

        return below(each_time(way, ask), "queries/", "tables/", "client/", "records/")


def micro_batch() -> Counter[str]:
    """Record a Spark micro-batch: one reader plans it, and a copy of the reader reads the data.

    Spark runs the copy in another process.
    """
    from penstock import Broker, Producer
    from penstock.spark.source.data_source import PenstockDataSource

    with walked() as way, Broker() as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "startingOffsets": "earliest"}
        source = PenstockDataSource({**options, "subscribe": "orders"})
        with Producer(broker.bootstrap_servers, compression_type="gzip") as producer:
            producer.send("orders", b"first").result(30)
            planner = source.streamReader(source.schema())
            limit, begin = planner.getDefaultReadLimit(), planner.initialOffset()

            def read_batch() -> None:
                nonlocal begin
                way.is_walked = is_of_client
                end = planner.latestOffset(begin, limit)
                planner.reportLatestOffset()
                reader, tasks = pickle.loads(pickle.dumps((planner, planner.partitions(begin, end))))
                assert [batch.num_rows for task in tasks for batch in reader.read(task)] == [1]
                planner.commit(begin)
                begin = end
                way.is_walked = lambda thread: False
                producer.send("orders", b"two tickets").result(30)

            read_batch()  # later ones find connections, and what is compiled and done once
            return each_time(way, read_batch)


JOURNEYS: dict[str, Callable[[], Counter[str]]] = {
    "A Produce": produce,
    "A Fetch into Arrow": fetch_into_arrow,
    "A transaction of a producer": transaction,
    "A JoinGroup": join_group,
    "A record on its way to a follower": follower,
    "A Spark micro-batch": micro_batch,
    "A table of events": table_of_events,
    "A question in SQL": question,
}
"""A dict from a section of ARCHITECTURE.md about a request to the function that records the request."""

HEADING = re.compile(
    r"^### (?P<title>[^\n:]+): (?P<count>\d+)(?: of \d+)? modules(?:, \d+ calls|, and \d+ of protocol)?$",
    re.MULTILINE,
)


COUNTED = ("A Produce",)
"""Sections of ARCHITECTURE.md whose headings also show the number of calls."""

APART = ("A Fetch into Arrow", "A Spark micro-batch")
"""Sections of ARCHITECTURE.md whose headings count the modules of `protocol` separately."""


def with_counts(page: str, ways: dict[str, Counter[str]]) -> str:
    """Return the page with the current numbers of modules in its headings."""

    def heading(found: re.Match[str]) -> str:
        title, count = found["title"], found["count"]
        if title not in ways:
            return f"### {title}: {count} modules"
        way = ways[title]
        apart = sum(path.startswith("protocol/") for path in way) if title in APART else 0
        more = f", {way.total()} calls" if title in COUNTED else f", and {apart} of protocol" if apart else ""
        return f"### {title}: {count} of {len(way) - apart} modules{more}"

    return HEADING.sub(heading, page)


LIBRARIES = ("duckdb", "numpy", "pyarrow.compute")
"""Libraries that the recorded programs import.

They are imported in advance and unprofiled, since importing them each time would take a third of the time.
"""


def walk(*titles: str) -> dict[str, Counter[str]]:
    """Return the calls of each module for these sections of ARCHITECTURE.md, recorded in a new process.

    All threads of that process start with the profiler.
    """
    done = subprocess.run(
        [sys.executable, __file__, *titles], capture_output=True, text=True, check=True, timeout=600
    )
    return {
        title: Counter(json.loads(line)) for title, line in zip(titles, done.stdout.splitlines(), strict=True)
    }


def show(title: str) -> None:
    """Record the request of one section of ARCHITECTURE.md in a fork, and print its calls as JSON."""
    walker = os.fork()
    if walker == 0:
        print(json.dumps(JOURNEYS[title]()))
        sys.exit()
    assert os.waitpid(walker, 0)[1] == 0, title


if __name__ == "__main__":
    if sys.argv[1:]:
        for library in LIBRARIES:
            importlib.import_module(library)
        for title in sys.argv[1:]:
            show(title)
    else:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_counts(page, walk(*JOURNEYS)), encoding="utf-8")
