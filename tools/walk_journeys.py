"""Walk the journeys of ARCHITECTURE.md, and write into it how many modules each request really passes.

    python tools/walk_journeys.py

Each journey is a small program. While it goes on, `sys.setprofile` notes each module of which a
function is called, in the threads of client and broker. Of compiled kernels it sees those that Python calls.
"""

# ruff: noqa: SIM117  the walk begins between the two
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def walked() -> Iterator[set[str]]:
    """The modules, by their paths in the package, of which functions are called here and in new threads."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            found.add(path[len(PACKAGE) :])
        elif event == "c_call" and (kernel := HOMES_OF_KERNELS.get(getattr(argument, "__name__", ""))):
            found.add(kernel)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def produce() -> set[str]:
    from penstock import Broker, Producer

    with walked() as found, tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"first").result(30)  # makes the topic
            found.clear()
            producer.send("orders", b"two tickets").result(30)
            return {path for path in found if path.startswith(("broker/", "log/", "protocol/", "records/"))}


def fetch_into_arrow() -> set[str]:
    from penstock import Broker, Producer, read_topic

    with walked() as found, Broker() as broker:
        with Producer(broker.bootstrap_servers, compression_type="gzip") as producer:
            producer.send("orders", b"two tickets").result(30)
        found.clear()
        assert read_topic("orders", broker.bootstrap_servers).num_rows == 1
        return {path for path in found if path.startswith(("client/", "records/"))}


def transaction() -> set[str]:
    from penstock import Broker, Producer

    with walked() as found, Broker() as broker:
        with Producer(broker.bootstrap_servers, transactional_id="shop") as producer:
            found.clear()
            with producer.transaction():
                producer.send("orders", b"two tickets")
            return {path for path in found if path.startswith("client/")}


GROUPS = ("broker/groups/", "broker/handlers/join_group", "broker/network/", "broker/requests/")


def join_group() -> set[str]:
    from penstock import Broker, Consumer, Producer

    with walked() as found, Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"two tickets").result(30)
        with Consumer(broker.bootstrap_servers, group_id="billing") as consumer:
            found.clear()
            consumer.subscribe("orders")
            while not consumer.assignment():
                consumer.poll(100)
            return {path for path in found if path.startswith(GROUPS)}


def follower() -> set[str]:
    from penstock import Cluster, Producer

    with walked() as found, Cluster(3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send("orders", b"first").result(30)
            found.clear()
            producer.send("orders", b"two tickets").result(30)
            return {path for path in found if path.startswith("broker/")}


def table_of_events() -> set[str]:
    from penstock import Broker, Event, Producer, read_topic
    from penstock.cloudevents import decode_events

    with Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            event = Event(id="1", source="/shop", type="order", json={"tickets": 2})
            producer.send("orders", event=event)
            producer.send("orders", event=event, mode="structured")
        table = read_topic("orders", broker.bootstrap_servers)
    decode_events(table)  # what is compiled once is not a part of the way
    with walked() as found:
        assert decode_events(table).num_rows == 2
        return {path for path in found if path.startswith("cloudevents/")}


def question() -> set[str]:
    from penstock import Broker, Producer, sql

    with walked() as found, Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b'{"tickets": 2}').result(30)
        found.clear()
        query = 'select tickets from orders where "offset" >= 0'
        assert sql(query, broker.bootstrap_servers).to_pylist() == [{"tickets": 2}]
        return {path for path in found if path.startswith(("queries/", "tables/", "client/", "records/"))}


JOURNEYS: dict[str, Callable[[], set[str]]] = {
    "A Produce": produce,
    "A Fetch into Arrow": fetch_into_arrow,
    "A transaction of a producer": transaction,
    "A JoinGroup": join_group,
    "A record on its way to a follower": follower,
    "A table of events": table_of_events,
    "A question in SQL": question,
}
"""By their headings. Spark's workers are processes of their own, and its journey is not walked."""

HEADING = re.compile(r"^### (?P<title>[^\n:]+): (?P<count>\d+)(?: of \d+)? modules$", re.MULTILINE)


def with_counts(page: str, counts: dict[str, int]) -> str:
    """The page with the numbers of modules in its headings."""

    def heading(found: re.Match[str]) -> str:
        title, count = found["title"], found["count"]
        of = f" of {counts[title]}" if title in counts else ""
        return f"### {title}: {count}{of} modules"

    return HEADING.sub(heading, page)


def walk(title: str) -> set[str]:
    """The modules of one journey, in a process of its own, where all threads begin under the profile."""
    done = subprocess.run(
        [sys.executable, __file__, title], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.split())


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*sorted(JOURNEYS[sys.argv[1]]()), sep="\n")
    else:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_counts(page, {title: len(walk(title)) for title in JOURNEYS}), encoding="utf-8")
