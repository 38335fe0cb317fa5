"""Walk the journeys of ARCHITECTURE.md, and write into it how many modules each request really passes.

    python tools/walk_journeys.py

Each journey is a small program. While it goes on, `sys.setprofile` notes each module of which a
function is called, in the threads of client and broker. Of compiled kernels it sees those that Python calls.
Where the broker alone is walked, its calls are counted, too. Where a client alone is walked, the modules of
`protocol`, through which every request passes, are counted apart.
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
from contextlib import contextmanager
from functools import reduce
from operator import and_
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = str(ROOT / "src" / "penstock") + os.sep


def homes_of_kernels() -> dict[str, str]:
    """The module of each compiled kernel, by the name of its C function: room, module and kernel."""
    text = (ROOT / "native" / "kernels.c").read_text(encoding="utf-8")
    modules = {
        str(path.relative_to(PACKAGE).with_suffix("")).replace("/", "_"): path.relative_to(PACKAGE).as_posix()
        for path in Path(PACKAGE).rglob("*.py")
    }
    names = set(re.findall(r"\b[a-z]\w*?__\w+", text))
    return {name: modules[name.partition("__")[0]] for name in names if name.partition("__")[0] in modules}


HOMES_OF_KERNELS = homes_of_kernels()


class Way:
    """Modules by their paths in the package, with the number of calls that went there."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.is_walked: Callable[[str], bool] = lambda thread: True
        """The choice of the threads that are walked, by their names."""


@contextmanager
def walked() -> Iterator[Way]:
    """The way of what is called here and in new threads."""
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
    """Keep the calls of modules in these rooms."""
    return Counter({path: count for path, count in calls.items() if path.startswith(beginnings)})


def is_of_broker(thread: str) -> bool:
    return thread.startswith("penstock-broker")


def is_of_client(thread: str) -> bool:
    return not is_of_broker(thread)


WALKS = 3
"""How often a journey is gone: what is done once in a while, or when the machine is slow, falls out."""

LEISURE_S = 0.05
"""Seconds in which a broker ends what belongs to an answer that has been received already."""


def each_time(way: Way, go: Callable[[], object]) -> Counter[str]:
    """Go a way several times, and return the calls that were made each time."""
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
        return each_time(way, lambda: read_topic("orders", servers))


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

    with walked() as way, Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"two tickets").result(30)
        consumers = [Consumer(broker.bootstrap_servers, group_id=f"billing-{n}") for n in range(WALKS)]
        waiting = iter(consumers)

        def join() -> None:
            consumer = next(waiting)
            consumer.subscribe("orders")
            while not consumer.assignment():
                consumer.poll(100)

        ways = each_time(way, join)
        for consumer in consumers:
            consumer.close()
        return below(ways, *GROUPS)


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
    with walked() as way:
        return below(each_time(way, lambda: decode_events(table)), "cloudevents/")


def question() -> Counter[str]:
    from penstock import Broker, Producer, sql

    with walked() as way, Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b'{"tickets": 2}').result(30)
        query = 'select tickets from orders where "offset" >= 0'
        ways = each_time(way, lambda: sql(query, broker.bootstrap_servers))
        return below(ways, "queries/", "tables/", "client/", "records/")


def micro_batch() -> Counter[str]:
    """Walk a micro-batch as Spark goes it: one object plans, and a copy of it reads in another process."""
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
"""By their headings."""

HEADING = re.compile(
    r"^### (?P<title>[^\n:]+): (?P<count>\d+)(?: of \d+)? modules(?:, \d+ calls|, and \d+ of protocol)?$",
    re.MULTILINE,
)


COUNTED = ("A Produce",)
"""The journeys whose headings say how many calls they are."""

APART = ("A Fetch into Arrow", "A Spark micro-batch")
"""The journeys whose headings count the modules of `protocol` apart."""


def with_counts(page: str, ways: dict[str, Counter[str]]) -> str:
    """The page with the numbers of modules in its headings."""

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
"""What journeys import that is not walked: without a profile, and once, this takes a third of the time."""


def walk(*titles: str) -> dict[str, Counter[str]]:
    """The ways of these journeys, each in a process of its own, where all threads begin under the profile."""
    done = subprocess.run(
        [sys.executable, __file__, *titles], capture_output=True, text=True, check=True, timeout=600
    )
    return {
        title: Counter(json.loads(line)) for title, line in zip(titles, done.stdout.splitlines(), strict=True)
    }


def show(title: str) -> None:
    """Print the way of one journey, walked in a fork of this process."""
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
