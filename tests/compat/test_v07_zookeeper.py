"""Kafka 0.7 on a real ZooKeeper: registration, discovery, and groups whose members are killed and return."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from compat import peers
from compat.peers import PATIENCE_S, until
from penstock.client import Producer
from penstock.errors import DecodeError, NetworkError
from penstock.gateway import Gateway
from penstock.testing import KafkaBroker
from penstock.v07.driver import Driver07
from penstock.v07.groups.consumer import GroupConsumer07
from penstock.v07.groups.coordination import BrokerPartition
from penstock.v07.producer import Producer07
from penstock.v07.server import Broker07

pytestmark = pytest.mark.compat

TICK_MS = 200
SESSION_MS = 60_000
"""The ZooKeeper session timeout, in ms, of processes that are not killed.

It is long, since a short session could expire on a busy machine.
"""
SHORT_SESSION_MS = 1_000
"""The session timeout, in ms, of processes that are killed: then others can soon take their partitions."""
QUICK: dict[str, object] = {
    "session_timeout_ms": SESSION_MS,
    "connection_timeout_ms": SESSION_MS,
    "rebalance_backoff_ms": 200,
    "rebalance_retries_max": 100,
    "fetcher_backoff_ms": 20,
    "autocommit_interval_ms": 200,
}


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a ZooKeeper server on loopback with short ticks; yield ``host:port``."""
    directory = tmp_path_factory.mktemp("zookeeper")
    (port,) = peers.free_ports(1)
    config = directory / "zoo.cfg"
    config.write_text(
        f"dataDir={directory}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\ntickTime={TICK_MS}\n"
        f"maxSessionTimeout={SESSION_MS}\nmaxClientCnxns=0\nadmin.enableServer=false\n"
    )
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    command = peers.java_command(
        peers.maven_classpath("kafka-2.8.2"), main, config, options=("-Dzookeeper.jmx.log4j.disable=true",)
    )
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: answers(port), "ZooKeeper starts")
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Return True if a ZooKeeper server answers.

    While it starts, it accepts connections without answering them.
    """
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as asked:
        asked.sendall(b"srvr")
        return asked.recv(9) == b"Zookeeper"
    return False


@pytest.fixture
def admin(zookeeper: str, request: pytest.FixtureRequest) -> Iterator[KazooClient]:
    """Provide a ZooKeeper client for the test itself, in a chroot that all clients of the test use."""
    chroot = f"/{request.node.name.partition('[')[0]}-{os.urandom(3).hex()}"
    client = KazooClient(zookeeper, timeout=SESSION_MS / 1000)
    client.start(PATIENCE_S)
    client.create(chroot)
    client.chroot = chroot
    yield client
    client.stop()
    client.close()


@pytest.fixture
def hosts(zookeeper: str, admin: KazooClient) -> str:
    return zookeeper + admin.chroot


@pytest.fixture
def brokers(tmp_path: Path, hosts: str) -> Iterator[Callable[..., Broker07]]:
    """Provide a function that runs a broker with a given broker id."""
    with contextlib.ExitStack() as stack:

        def make(number: int, partitions: int = 3, **settings: object) -> Broker07:
            texts = {
                "brokerid": number,
                "num.partitions": partitions,
                "zk.connect": hosts,
                "zk.sessiontimeout.ms": SESSION_MS,
                **settings,
            }
            return stack.enter_context(Broker07(tmp_path / f"broker-{number}", settings=texts))

        yield make


def text(client: KazooClient, path: str) -> str | None:
    try:
        return bytes(client.get(path)[0]).decode()
    except NoNodeError:
        return None


def expire(client: KazooClient, hosts: str) -> None:
    """End a client's ZooKeeper session from outside, as the server does when a client is silent too long."""
    session = client.client_id

    def is_over() -> bool:
        # The session moves to whoever connected last; closing it from here may come too late for that.
        if client.client_id == session:
            twin = KazooClient(hosts, timeout=SESSION_MS / 1000, client_id=session)
            twin.start(PATIENCE_S)
            twin.stop()
            twin.close()
            time.sleep(0.2)
        return client.client_id not in (session, None)

    until(is_over, "the session is over")


def member(hosts: str, group: str = "g", name: str | None = None, **options: object) -> GroupConsumer07:
    settings = QUICK | dict(options.pop("settings", {}))  # type: ignore[call-overload]
    topics = [] if {"pattern", "exclude"} & options.keys() else options.pop("topics", ["t"])
    return GroupConsumer07(hosts, group, topics, consumer_id=name, settings=settings, **options)  # type: ignore[arg-type]


def sender(hosts: str, **options: object) -> Producer07:
    return Producer07(zookeeper=hosts, connection_timeout_ms=SESSION_MS, **options)  # type: ignore[arg-type]


def owned(consumer: GroupConsumer07) -> list[str]:
    return sorted(str(place) for _, place in consumer.owned)


# --- brokers -----------------------------------------------------------------------------------------------


def test_a_broker_says_where_it_is_and_what_it_has(
    brokers: Callable[..., Broker07], admin: KazooClient
) -> None:
    broker = brokers(7, **{"topic.partition.count.map": "wide:5"})
    creator, host, port = (text(admin, "/brokers/ids/7") or "").split(":")
    assert (host, port) == ("127.0.0.1", str(broker.port))
    assert text(admin, "/brokers")
    assert admin.exists("/brokers/ids/7").owner_session_id
    assert not admin.exists("/brokers/ids").owner_session_id
    with Driver07(broker.host, broker.port) as driver:
        driver.send("wide", [b"x"], partition=1)
        driver.send("narrow", [b"x"], partition=1)
    until(lambda: text(admin, "/brokers/topics/narrow/7") == "3", "the topic is announced")
    assert text(admin, "/brokers/topics/wide/7") == "5"
    broker.close()
    assert admin.get_children("/brokers/ids") == []
    assert admin.get_children("/brokers/topics/wide") == []
    broker.start()
    assert text(admin, "/brokers/topics/wide/7") == "5"
    assert creator


def test_a_broker_waits_for_a_dead_session_with_its_number(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    before = KazooClient(hosts, timeout=SESSION_MS / 1000)
    before.start(PATIENCE_S)
    before.create("/brokers/ids/1", b"dead:127.0.0.1:1", ephemeral=True, makepath=True)
    threading.Timer(0.5, lambda: (before.stop(), before.close())).start()
    broker = brokers(1)
    assert text(admin, "/brokers/ids/1") != "dead:127.0.0.1:1"
    with pytest.raises(NetworkError, match=r"broker id 1 is held in ZooKeeper by .* was not released"):
        Broker07(
            broker.data_dir + "-other",
            settings={
                "brokerid": 1,
                "zk.connect": hosts,
                "zk.sessiontimeout.ms": SHORT_SESSION_MS,
                "zk.connectiontimeout.ms": SESSION_MS,
            },
        ).start()


def test_a_broker_whose_session_expires_registers_anew(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.v07.groups import registration

    made: list[registration.Registration] = []
    start = registration.Registration.start
    monkeypatch.setattr(registration.Registration, "start", lambda self: (made.append(self), start(self))[1])
    broker = brokers(1)
    with Driver07(broker.host, broker.port) as driver:
        driver.send("t", [b"x"], partition=0)
    until(lambda: text(admin, "/brokers/topics/t/1"), "the topic is announced")
    session = admin.exists("/brokers/ids/1").owner_session_id
    client = made[0]._client
    assert client is not None
    expire(client, hosts)

    def is_back() -> bool:
        stat, topic = admin.exists("/brokers/ids/1"), admin.exists("/brokers/topics/t/1")
        return bool(stat and topic and stat.owner_session_id == topic.owner_session_id != session)

    until(is_back, "the broker is back under a new session")


def test_no_zookeeper_and_no_chroot_are_told(hosts: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"has no node /.*/nowhere; create it first"):
        Producer07(zookeeper=hosts + "/nowhere", connection_timeout_ms=SESSION_MS)
    (port,) = peers.free_ports(1)
    with pytest.raises(NetworkError, match=f"no ZooKeeper answers at 127.0.0.1:{port}"):
        Producer07(zookeeper=f"127.0.0.1:{port}", session_timeout_ms=500)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(NetworkError, match="no ZooKeeper answers"):
            Producer07(
                zookeeper=f"127.0.0.1:{silent.getsockname()[1]}",
                session_timeout_ms=200,
                connection_timeout_ms=1_500,
            )
        assert time.monotonic() - began > 1.4, "ZooKeeper has longer than a session to answer"


def test_nodes_can_belong_to_a_user(hosts: str, tmp_path: Path, admin: KazooClient) -> None:
    from kazoo.exceptions import NoAuthError

    settings = {"zk.connect": hosts, "zk.digest": "kafka:secret", "zk.sessiontimeout.ms": SESSION_MS}
    with Broker07(tmp_path / "data", settings=settings):
        with pytest.raises(NoAuthError):
            admin.get("/brokers/ids/0")
        with sender(hosts, digest="kafka:secret") as producer:
            producer.send("t", [b"x"])
        with member(hosts, digest="kafka:secret") as consumer:
            message = consumer.get(PATIENCE_S)
            assert message is not None
            assert message.payload == b"x"


# --- producers ---------------------------------------------------------------------------------------------


def test_a_new_topic_reaches_every_partition_of_every_broker(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    both = [brokers(0), brokers(1)]
    with sender(hosts, dice=random.Random(1)) as producer:
        deadline = time.monotonic() + 30
        while True:
            producer.send("fresh", [b"x"])
            ends = []
            for broker in both:
                with Driver07(broker.host, broker.port) as driver:
                    ends += [driver.latest("fresh", partition) for partition in range(3)]
            if all(ends):
                break
            assert time.monotonic() < deadline, ends
        third = brokers(2, partitions=1)
        until(lambda: reaches(producer, third), "a broker that came later gets its share")
        for number in range(20):
            producer.send("fresh", [b"keyed"], key=f"k{number % 2}")


def reaches(producer: Producer07, broker: Broker07) -> bool:
    producer.send("fresh", [b"x"])
    with Driver07(broker.host, broker.port) as driver:
        return driver.latest("fresh", 0) > 0


# --- groups ------------------------------------------------------------------------------------------------


def announce(brokers: list[Broker07], admin: KazooClient, topic: str = "t") -> None:
    """Create a topic on all brokers, and wait until ZooKeeper lists the topic for each of them."""
    for broker in brokers:
        with Driver07(broker.host, broker.port) as driver:
            driver.connection.produce([])
            driver.send(topic, [], partition=0)
    count = len(brokers)
    until(lambda: len(children(admin, f"/brokers/topics/{topic}")) == count, "the topic is announced")


def children(client: KazooClient, path: str) -> list[str]:
    try:
        return list(client.get_children(path))
    except NoNodeError:
        return []


def test_three_consumers_two_brokers_three_partitions_each(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    announce([brokers(0), brokers(1)], admin)
    expected = {"a": ["0-0", "0-1"], "b": ["0-2", "1-0"], "c": ["1-1", "1-2"]}
    with contextlib.ExitStack() as stack:
        members = {name: stack.enter_context(member(hosts, name=name)) for name in "cab"}
        until(lambda: {name: owned(m) for name, m in members.items()} == expected, "the split of the seed")
        until(
            lambda: text(admin, "/consumers/g/owners/t/1-0") == "g_b-0", "the owner is named after its stream"
        )
        assert text(admin, "/consumers/g/ids/g_a") == '{ "t": 1 }'
        members["b"].close()
        until(lambda: owned(members["a"]) == ["0-0", "0-1", "0-2"], "the others share what was left")
        until(lambda: owned(members["c"]) == ["1-0", "1-1", "1-2"], "the others share what was left")
        late = brokers(2, partitions=2)
        announce([late], admin, "other")
        with Driver07(late.host, late.port) as driver:
            driver.send("t", [b"x"], partition=1)
        until(lambda: len(owned(members["a"])) == len(owned(members["c"])) == 4, "a new broker is shared")


def test_joining_and_leaving_repeats_and_loses_nothing(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    announce([brokers(0), brokers(1)], admin)
    got: Counter[bytes] = Counter()
    lock = threading.Lock()

    def consume(consumer: GroupConsumer07) -> None:
        for message in consumer:
            with lock:
                got[message.payload] += 1

    total = 3_000
    with sender(hosts, dice=random.Random(2)) as producer, contextlib.ExitStack() as stack:
        threads = []
        members = []
        for number in range(total):
            producer.send("t", [b"%d" % number])
            if number in (0, 500, 1_000):
                members.append(stack.enter_context(member(hosts, name=f"m{number}")))
                threads.append(threading.Thread(target=consume, args=(members[-1],)))
                threads[-1].start()
            if number == 2_000:
                members[0].close()
        until(lambda: len(got) == total, f"all arrive ({len(got)} of {total})")
        for one in members:
            one.close()
        for thread in threads:
            thread.join()
    assert set(got.values()) == {1}


def test_where_reading_begins(brokers: Callable[..., Broker07], hosts: str, admin: KazooClient) -> None:
    broker = brokers(0, partitions=1)
    with Driver07(broker.host, broker.port) as driver:
        driver.send("t", [b"old"])
        until(lambda: text(admin, "/brokers/topics/t/0"), "the topic is announced")
        assert payloads(member(hosts, "all"), 1) == [b"old"]
        with member(hosts, "new", settings={"autooffset_reset": "largest"}) as consumer:
            driver.send("t", [b"new"])
            message = consumer.get(PATIENCE_S)
            assert message is not None
            assert (message.payload, message.offset) == (b"new", 13)
        assert text(admin, "/consumers/new/offsets/t/0-0") == "26"
        assert payloads(member(hosts, "all"), 1) == [b"new"]
        # An offset that the log does not have: begin where the setting says, and store that.
        admin.set("/consumers/all/offsets/t/0-0", b"999")
        assert payloads(member(hosts, "all"), 2) == [b"old", b"new"]
        with pytest.raises(Exception, match=r"autooffset_reset is 'never': say smallest or largest"):
            member(hosts, "none", settings={"autooffset_reset": "never"}).start()


def test_a_stored_offset_inside_a_message_stops_no_other_partition(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient, caplog: pytest.LogCaptureFixture
) -> None:
    broker = brokers(0, partitions=2)
    lengths = (2**31 - 1).to_bytes(4, "big") * 100
    with Driver07(broker.host, broker.port) as driver:
        driver.send("t", [lengths], partition=0)
        driver.send("t", [b"other"], partition=1)
        until(lambda: text(admin, "/brokers/topics/t/0"), "the topic is announced")
        for group, reset, wanted in (("a", "smallest", {lengths, b"other"}), ("b", "largest", {b"other"})):
            admin.create(f"/consumers/{group}/offsets/t/0-0", b"10", makepath=True)
            admin.create(f"/consumers/{group}/offsets/t/0-1", b"0")
            consumer = member(hosts, group, settings={"autooffset_reset": reset})
            assert set(payloads(consumer, len(wanted))) == wanted
        assert "no message of t 0-0 can be read at byte 10: its length says 2147483651 bytes" in caplog.text
        admin.create("/consumers/c/offsets/t/0-0", b"10", makepath=True)
        admin.create("/consumers/c/offsets/t/0-1", b"0", makepath=True)
        with member(hosts, "c", settings={"autooffset_reset": "never"}) as consumer:
            errors, messages = 0, []
            while errors + len(messages) < 2:
                try:
                    messages.append(consumer.get(PATIENCE_S))
                except DecodeError:
                    errors += 1
            assert [message.payload for message in messages if message] == [b"other"]
            driver.send("t", [b"later"], partition=1)
            later = consumer.get(PATIENCE_S)
            assert later is not None
            assert later.payload == b"later"


def payloads(consumer: GroupConsumer07, count: int) -> list[bytes]:
    with consumer:
        found = [consumer.get(PATIENCE_S) for _ in range(count)]
        return [message.payload for message in found if message is not None]


def test_streams_and_patterns(brokers: Callable[..., Broker07], hosts: str, admin: KazooClient) -> None:
    broker = brokers(0, partitions=4)
    announce([broker], admin, "events-a")
    announce([broker], admin, "other")
    with member(hosts, name="m", pattern="events.*", stream_count=3) as consumer:
        assert owned(consumer) == ["0-0", "0-1", "0-2", "0-3"]
        assert sorted(Counter(consumer.owned.values()).values()) == [1, 1, 2]
        assert text(admin, "/consumers/g/ids/g_m") == "*3*events.*"
        announce([broker], admin, "events-b")
        until(lambda: len(consumer.owned) == 8, "a topic that matches is taken in when it appears")
        with Driver07(broker.host, broker.port) as driver:
            for partition in range(4):
                driver.send("events-b", [b"%d" % partition], partition=partition)
        found = {
            message.payload for message in (consumer.get(PATIENCE_S) for _ in range(4)) if message is not None
        }
        assert found == {b"0", b"1", b"2", b"3"}
    with member(hosts, name="x", exclude="events.*") as consumer:
        assert {topic for topic, _ in consumer.owned} == {"other"}


def test_somebody_elses_claim_is_respected_and_their_garbage_left_out(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    announce([brokers(0)], admin)
    admin.create("/consumers/g/owners/t/0-1", b"stranger-0", makepath=True)
    admin.create("/consumers/g/ids/g_samsa", b"t", makepath=True)
    began = time.monotonic()
    threading.Timer(1.0, lambda: admin.delete("/consumers/g/owners/t/0-1")).start()
    with member(hosts) as consumer:
        assert time.monotonic() - began > 0.9
        assert owned(consumer) == ["0-0", "0-1", "0-2"]
    admin.create("/consumers/g/owners/t/0-1", b"stranger-0", makepath=True)
    with pytest.raises(NetworkError, match=r"others still own what .* should, after 2 tries"):
        member(hosts, settings={"rebalance_retries_max": 2}).start()


def test_a_member_whose_session_expires_comes_back(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient
) -> None:
    broker = brokers(0)
    announce([broker], admin)
    with member(hosts, name="a") as first, member(hosts, name="b") as second:
        until(lambda: owned(first) == ["0-0", "0-1"] and owned(second) == ["0-2"], "they share")
        assert first._client is not None
        expire(first._client, hosts)
        until(lambda: admin.exists("/consumers/g/ids/g_a"), "the member is back under its name")
        until(lambda: owned(first) == ["0-0", "0-1"] and owned(second) == ["0-2"], "they share again")
        owners = {place: text(admin, f"/consumers/g/owners/t/{place}") for place in ("0-0", "0-1", "0-2")}
        assert owners == {"0-0": "g_a-0", "0-1": "g_a-0", "0-2": "g_b-0"}
        with Driver07(broker.host, broker.port) as driver:
            driver.send("t", [b"x"], partition=0)
        message = first.get(PATIENCE_S)
        assert message is not None


# --- random trouble ----------------------------------------------------------------------------------------

MEMBER = """
import sys
from penstock.v07.groups.consumer import GroupConsumer07
hosts, name, settings = sys.argv[1], sys.argv[2], eval(sys.argv[3])
with GroupConsumer07(hosts, "g", ["t"], consumer_id=name, settings=settings) as consumer:
    for message in consumer:
        sys.stdout.buffer.write(message.payload + b"\\n")
        sys.stdout.buffer.flush()
"""


class Members:
    """Consumer processes that can be killed; their output shows which messages were delivered."""

    def __init__(self, hosts: str, directory: Path, *, session_ms: int = SESSION_MS) -> None:
        self._hosts = hosts
        self._directory = directory
        self._settings = QUICK | {"session_timeout_ms": session_ms}
        self._count = 0
        self.running: list[subprocess.Popen[bytes]] = []

    def add(self) -> None:
        self._count += 1
        path = self._directory / f"member-{self._count}"
        with path.open("wb") as output, path.with_suffix(".log").open("wb") as log:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-c", MEMBER, self._hosts, f"m{self._count}", repr(self._settings)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=log,
                )
            )

    def kill(self, dice: random.Random) -> None:
        process = self.running.pop(dice.randrange(len(self.running)))
        process.kill()
        process.wait()

    def kill_all(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def delivered(self) -> Counter[bytes]:
        found: Counter[bytes] = Counter()
        for path in self._directory.glob("member-*"):
            if not path.suffix:
                found.update(path.read_bytes().split(b"\n")[:-1])
        return found


BROKER = """
import signal, sys
from penstock.v07.server import Broker07
with Broker07(sys.argv[1], port=int(sys.argv[2]), settings=eval(sys.argv[3])):
    print("ready", flush=True)
    signal.pause()
"""


class BrokerProcess:
    """A broker process that can be killed and started again with its port, broker id and data."""

    def __init__(self, hosts: str, directory: Path, number: int) -> None:
        (self.port,) = peers.free_ports(1)
        settings = {
            "brokerid": number,
            "num.partitions": 3,
            "zk.connect": hosts,
            "zk.sessiontimeout.ms": SHORT_SESSION_MS,
            "zk.connectiontimeout.ms": SESSION_MS,
        }
        self._command = [sys.executable, "-c", BROKER, directory / f"broker-{number}", self.port, settings]
        self.start()

    def start(self) -> None:
        command = list(map(str, self._command))
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def messages(self) -> Counter[bytes]:
        """Return how often each message is stored in the broker's partitions of the topic."""
        with Driver07("127.0.0.1", self.port) as driver:
            return Counter(
                message.payload for number in range(3) for message in driver.messages("t", number, 0)
            )


def random_trouble(hosts: str, admin: KazooClient, directory: Path, seconds: float, seed: int) -> None:
    """Kill and restart members and brokers at random while messages are sent.

    At the end all messages must have been delivered.
    """
    dice = random.Random(seed)
    members = Members(hosts, directory, session_ms=SHORT_SESSION_MS)
    with contextlib.ExitStack() as stack:
        stack.callback(members.kill_all)
        two = [BrokerProcess(hosts, directory, number) for number in (0, 1)]
        for broker in two:
            stack.callback(broker.kill)
            with Driver07("127.0.0.1", broker.port) as driver:
                driver.send("t", [], partition=0)
        until(lambda: len(children(admin, "/brokers/topics/t")) == 2, "the topic is announced")
        members.add()
        producer = stack.enter_context(sender(hosts, dice=random.Random(seed)))
        send_among_trouble(producer, members, two, dice, seconds)
        places = {str(BrokerPartition(broker, number)) for broker in (0, 1) for number in range(3)}
        until(lambda: set(children(admin, "/consumers/g/owners/t")) == places, "everything is owned")
        # What a killed broker had not read from its socket is lost: nothing says so in 0.7.
        kept = sum((broker.messages() for broker in two), Counter())
        assert max(kept.values()) == 1
        until(lambda: set(members.delivered()) == set(kept), f"all {len(kept)} are delivered")
        ids = set(children(admin, "/consumers/g/ids"))
        owners = {text(admin, f"/consumers/g/owners/t/{place}") or "" for place in places}
        assert {owner.rpartition("-")[0] for owner in owners} <= ids


def send_among_trouble(
    producer: Producer07, members: Members, brokers: list[BrokerProcess], dice: random.Random, seconds: float
) -> None:
    sent = 0
    deadline = time.monotonic() + seconds
    next_trouble = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        with contextlib.suppress(NetworkError):  # the broker is down; whether this one arrived is not known
            producer.send("t", [b"%d" % sent])
        sent += 1
        time.sleep(0.002)
        if time.monotonic() < next_trouble:
            continue
        if dice.random() < 0.25:
            broker = dice.choice(brokers)
            broker.kill()
            time.sleep(
                dice.choice([0, 2 * SHORT_SESSION_MS / 1000])
            )  # back before its session ends, or after
            broker.start()
        elif len(members.running) < 2 or (len(members.running) < 5 and dice.random() < 0.5):
            members.add()
        else:
            members.kill(dice)
        next_trouble = time.monotonic() + dice.uniform(0.5, 2.0)


def test_members_and_brokers_killed_at_random(hosts: str, admin: KazooClient, tmp_path: Path) -> None:
    random_trouble(hosts, admin, tmp_path, 8, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_members_and_brokers_killed_at_random_for_minutes(
    hosts: str, admin: KazooClient, tmp_path: Path, seed: int
) -> None:
    random_trouble(hosts, admin, tmp_path, 60, seed)


def test_nobody_dies_and_every_message_comes_once(
    brokers: Callable[..., Broker07], hosts: str, admin: KazooClient, tmp_path: Path
) -> None:
    announce([brokers(0), brokers(1)], admin)
    members = Members(hosts, tmp_path)
    try:
        for _ in range(3):
            members.add()
        until(lambda: len(children(admin, "/consumers/g/ids")) == 3, "all are members")
        until(lambda: len(children(admin, "/consumers/g/owners/t")) == 6, "everything is owned")
        with sender(hosts, dice=random.Random(1)) as producer:
            for number in range(2_000):
                producer.send("t", [b"%d" % number])
        until(lambda: sum(members.delivered().values()) >= 2_000, "all are delivered")
        assert members.delivered() == Counter(b"%d" % number for number in range(2_000))
    finally:
        members.kill_all()


# --- a gateway -------------------------------------------------------------------------------------------


def gateway_of(kafka: KafkaBroker, hosts: str, number: int = 4, **options: Any) -> Gateway:
    return Gateway(kafka.bootstrap_servers, v07_port=0, v07_zookeeper=hosts, v07_broker_id=number, **options)


def test_clients_find_a_gateway_as_a_broker(hosts: str, admin: KazooClient) -> None:
    with KafkaBroker(num_partitions=2) as kafka:
        with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            producer.send("there", b"before").result(PATIENCE_S)
        with gateway_of(kafka, hosts) as gateway:
            _, host, port = (text(admin, "/brokers/ids/4") or "").split(":")
            assert (host, int(port)) == ("127.0.0.1", gateway.v07_port)
            assert text(admin, "/brokers/topics/there/4") == "2"
            assert admin.get_children("/brokers/topics") == ["there"]
            with sender(hosts) as old:
                old.send("made", [b"by 0.7"])
            until(lambda: text(admin, "/brokers/topics/made/4") == "2", "the new topic is announced")
        assert admin.get_children("/brokers/ids") == []


def test_a_group_reads_a_cluster_of_today_and_goes_on_behind_another_gateway(hosts: str) -> None:
    numbers = range(600)
    found: Counter[int] = Counter()

    def read_until(total: int, *members: GroupConsumer07) -> None:
        end = time.monotonic() + PATIENCE_S
        while sum(found.values()) < total:
            assert time.monotonic() < end, f"{sum(found.values())} of {total}"
            for each in members:
                while (message := each.get(0.05)) is not None:
                    found[int(message.payload)] += 1

    with KafkaBroker(num_partitions=4) as kafka, Producer(bootstrap_servers=kafka.bootstrap_servers) as new:

        def produce(some: range) -> None:
            for number in some:
                new.send("t", b"%d" % number, partition=number % 4)
            new.flush()

        produce(numbers[:300])
        with gateway_of(kafka, hosts), member(hosts) as first, member(hosts) as second:
            until(lambda: len(owned(first)) == len(owned(second)) == 2, "both read")
            read_until(300, first, second)
        produce(numbers[300:])
        with gateway_of(kafka, hosts), member(hosts) as third:
            read_until(600, third)
    assert found == Counter(numbers)
