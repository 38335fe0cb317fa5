"""Apache Kafka's own command line tools, from Maven, against our broker.

The tests also run against a real Apache Kafka in `make soak`, where the tools must give the same results.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.wire_client import WireClient
from compat.peers import java, maven_classpath, real_kafka
from compat.places import ONE, PLACES, THREE_AND_AGAIN_ONE, made
from penstock import Broker
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5", "group.initial.rebalance.delay.ms": "0"}
TOOLS = "org.apache.kafka.tools"


@pytest.fixture(
    scope="module", params=[*THREE_AND_AGAIN_ONE, pytest.param("Apache Kafka", marks=pytest.mark.soak)]
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """Provide a broker's bootstrap servers and its data directory."""
    directory = tmp_path_factory.mktemp("data")
    if request.param in PLACES:
        with made(request.param, directory / "data", SETTINGS) as broker:
            own = directory / "data" if request.param == ONE else directory / "data" / "broker-1"
            yield broker.bootstrap_servers, own
    else:
        with real_kafka("4.3.0", directory=directory) as servers:
            yield servers, directory / "data"


@pytest.fixture(scope="module")
def servers(place: tuple[str, Path]) -> str:
    return place[0]


def tool(name: str, *args: object, stdin: str | None = None, fails: bool = False) -> str:
    """Run a tool of Apache Kafka 4.3.0; return its standard output and standard error."""
    main = name if "." in name and name.startswith("kafka.") else f"{TOOLS}.{name}"
    done = java(maven_classpath("kafka-4.3.0"), main, *args, stdin=stdin, check=not fails)
    assert not fails or done.returncode
    return done.stdout + done.stderr


def topics(servers: str, *args: object, **more: bool) -> str:
    return tool("TopicCommand", "--bootstrap-server", servers, *args, **more)


def lines(text: str) -> list[str]:
    """Return the lines that a tool printed, without its logger's warnings."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith(("SLF4J", "WARNING"))]


def test_topics(servers: str) -> None:
    wanted = ("--topic", "tools", "--partitions", 3, "--replication-factor", 1)
    assert "Created topic tools." in topics(servers, "--create", *wanted, "--config", "retention.ms=5000")
    assert "already exists" in topics(servers, "--create", *wanted, fails=True)
    assert "tools" in lines(topics(servers, "--list"))
    topics(servers, "--alter", "--topic", "tools", "--partitions", 5)
    time.sleep(0.3)
    described = topics(servers, "--describe", "--topic", "tools")
    assert re.search(
        r"PartitionCount:\s*5\s+ReplicationFactor:\s*1\s+Configs:.*retention\.ms=5000", described
    )
    assert len(re.findall(r"Leader: (\d)\s+Replicas: \1\s+Isr: \1", described)) == 5
    topics(servers, "--delete", "--topic", "tools")
    time.sleep(0.3)
    assert "tools" not in lines(topics(servers, "--list"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(servers: str, codec: str) -> None:
    topic = f"console-{codec}"
    sent = [f"a:{n},b:x\tk{n}\tv{n}" for n in range(200)] + ["h:1\ttombstone\tNULL"]
    tool(
        "ConsoleProducer", "--bootstrap-server", servers, "--topic", topic, "--compression-codec", codec,
        "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
        "--reader-property", "null.marker=NULL",
        stdin="\n".join(sent) + "\n",
    )  # fmt: skip
    read = tool(
        "consumer.ConsoleConsumer", "--bootstrap-server", servers, "--topic", topic, "--from-beginning",
        "--max-messages", len(sent), "--timeout-ms", 30000, "--formatter-property", "print.key=true",
        "--formatter-property", "print.headers=true", "--formatter-property", "print.offset=true",
        "--formatter-property", "null.literal=NULL",
    )  # fmt: skip
    expected = [f"Offset:{n}\t{line}" for n, line in enumerate(sent)]
    assert [line for line in lines(read) if line.startswith("Offset:")] == expected


def test_perf_tools(servers: str) -> None:
    topics(servers, "--create", "--topic", "perf", "--partitions", 3)
    properties = [f"bootstrap.servers={servers}", "acks=all", "compression.type=lz4"]
    printed = tool(
        "ProducerPerformance", "--topic", "perf", "--num-records", 50000, "--record-size", 100,
        "--throughput", -1, "--producer-props", *properties,
    )  # fmt: skip
    assert "50000 records sent" in printed
    printed = tool(
        "ConsumerPerformance", "--bootstrap-server", servers, "--topic", "perf", "--num-records", 50000,
        "--timeout", 30000,
    )  # fmt: skip
    assert re.search(r", 50\d\d\d, ", printed), printed


def test_verifiable_producer_and_consumer_in_a_group(servers: str) -> None:
    topics(servers, "--create", "--topic", "verifiable", "--partitions", 4)
    place = ("--bootstrap-server", servers, "--topic", "verifiable")
    sent = tool("VerifiableProducer", *place, "--max-messages", 1000, "--acks", -1)
    assert sent.count('"name":"producer_send_success"') == 1000
    read = tool(
        "VerifiableConsumer", *place, "--group-id", "verifiers", "--max-messages", 1000,
        "--reset-policy", "earliest",
    )  # fmt: skip
    counts = [int(count) for count in re.findall(r'"name":"records_consumed".*?"count":(\d+)', read)]
    counts = counts or [
        int(count) for count in re.findall(r'"count":(\d+).*?"name":"records_consumed"', read)
    ]
    assert sum(counts) == 1000
    groups = ("consumer.group.ConsumerGroupCommand", "--bootstrap-server", servers)
    assert "verifiers" in lines(tool(*groups, "--list"))
    described = tool(*groups, "--describe", "--group", "verifiers")
    rows = [line.split() for line in described.splitlines() if line.startswith("verifiers")]
    assert sum(int(row[3]) for row in rows) == sum(int(row[4]) for row in rows) == 1000, described
    reset = ("--reset-offsets", "--group", "verifiers", "--topic", "verifiable", "--to-earliest", "--execute")
    tool(*groups, *reset)
    described = tool(*groups, "--describe", "--group", "verifiers", "--offsets")
    rows = [line.split() for line in described.splitlines() if line.startswith("verifiers")]
    assert len(rows) == 4
    assert all(row[3] == "0" for row in rows), rows
    assert "successful" in tool(*groups, "--delete", "--group", "verifiers")


def test_configs(servers: str) -> None:
    topics(servers, "--create", "--topic", "configured")
    command = ("kafka.admin.ConfigCommand", "--bootstrap-server", servers, "--entity-type", "topics")
    command = (*command, "--entity-name", "configured")
    tool(*command, "--alter", "--add-config", "retention.ms=7000,cleanup.policy=[compact,delete]")
    time.sleep(0.3)
    described = tool(*command, "--describe")
    assert "retention.ms=7000" in described
    assert "cleanup.policy=compact,delete" in described
    tool(*command, "--alter", "--delete-config", "retention.ms")
    time.sleep(0.3)
    assert "retention.ms=7000" not in tool(*command, "--describe")
    assert "InvalidConfigurationException" in tool(
        *command, "--alter", "--add-config", "retention.ms=x", fails=True
    )
    assert "min.insync.replicas=1" in tool(*command, "--describe", "--all")


def test_offsets_and_deleting_records(servers: str, tmp_path: Path) -> None:
    tool("ConsoleProducer", "--bootstrap-server", servers, "--topic", "deleted", stdin="x\n" * 100)
    ask = ("GetOffsetShell", "--bootstrap-server", servers, "--topic", "deleted", "--time")
    assert "deleted:0:100" in lines(tool(*ask, -1))
    assert "deleted:0:0" in lines(tool(*ask, -2))
    assert re.search(r"deleted:0:\d+", tool(*ask, -3))
    file = tmp_path / "offsets.json"
    file.write_text('{"partitions": [{"topic": "deleted", "partition": 0, "offset": 40}], "version": 1}')
    printed = tool("DeleteRecordsCommand", "--bootstrap-server", servers, "--offset-json-file", file)
    assert re.search(r"partition: deleted-0\s+low_watermark: 40", printed)
    assert "deleted:0:40" in lines(tool(*ask, -2))


def test_descriptions_of_the_broker(servers: str) -> None:
    described = tool("LogDirsCommand", "--bootstrap-server", servers, "--describe")
    assert '"broker":1' in described
    assert '"error":null' in described
    versions = tool("BrokerApiVersionsCommand", "--bootstrap-server", servers)
    assert "Produce(0)" in versions
    assert re.search(r"Fetch\(1\): \d+ to 18 \[usable: 18\]", versions)
    assert re.search(r"Cluster ID: \S+", tool("ClusterTool", "cluster-id", "--bootstrap-server", servers))
    quorum = tool("MetadataQuorumCommand", "--bootstrap-server", servers, "describe", "--status")
    assert re.search(r"LeaderId:\s+[01]\b", quorum)  # the controller of three brokers is none of them
    replication = tool("MetadataQuorumCommand", "--bootstrap-server", servers, "describe", "--replication")
    brokers = re.findall(r"^\d+\s.*(Leader|Observer)\s*$", replication, re.MULTILINE)
    assert brokers in (["Leader"], ["Leader", "Observer", "Observer", "Observer"]), replication
    assert "metadata.version" in tool("FeatureCommand", "--bootstrap-server", servers, "describe")


def share_groups(servers: str, *args: object, **more: bool) -> str:
    return tool("consumer.group.ShareGroupCommand", "--bootstrap-server", servers, *args, **more)


def row_of(text: str, word: str) -> list[str]:
    """Return the words of the table row that begins with a given word."""
    return next(line.split() for line in lines(text) if line.split()[0] == word)


def test_share_groups(servers: str) -> None:
    topics(servers, "--create", "--topic", "shared", "--partitions", 2)
    reset = ("--group", "workers", "--topic", "shared", "--execute")
    with WireClient(int(servers.partition(",")[0].rpartition(":")[2])) as client:
        beat = ShareGroupHeartbeatRequest(
            group_id="workers", member_id="m", member_epoch=0, subscribed_topic_names=["shared"]
        )
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["workers"])
        deadline = time.monotonic() + 60
        while (found := client.ask(asked, 6).coordinators[0]).error_code:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
    with WireClient(found.port) as client:
        while (answer := client.ask(beat, 1)).error_code:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        while not (answer.assignment and answer.assignment.topic_partitions):
            assert time.monotonic() < deadline, answer
            time.sleep(0.5)
            beat.member_epoch = answer.member_epoch
            answer = client.ask(beat, 1)
        assert "workers" in lines(share_groups(servers, "--list"))
        state = row_of(share_groups(servers, "--describe", "--group", "workers", "--state"), "workers")
        assert "Stable" in state
        members = row_of(share_groups(servers, "--describe", "--group", "workers", "--members"), "workers")
        assert "m" in members
        refused = share_groups(servers, "--reset-offsets", *reset, "--to-earliest", fails=True)
        assert "not empty" in refused
        beat.member_epoch, beat.subscribed_topic_names = -1, None
        assert client.ask(beat, 1).error_code == 0
    share_groups(servers, "--reset-offsets", *reset, "--to-earliest")
    described = share_groups(servers, "--describe", "--group", "workers", "--offsets")
    assert row_of(described, "workers")[1:] == ["shared", "0", "0", "0"]
    deleted = share_groups(servers, "--delete-offsets", "--group", "workers", "--topic", "shared")
    assert "Successful" in row_of(deleted, "shared")
    assert "workers" in share_groups(servers, "--delete", "--group", "workers")
    assert "workers" not in lines(share_groups(servers, "--list"))


def test_dump_log_reads_our_files(place: tuple[str, Path]) -> None:
    servers, directory = place
    rows = "".join(f"k{n}\tv{n}\n" for n in range(3000))
    topics(servers, "--create", "--topic", "dumped", "--config", "segment.bytes=1048576")
    for codec in ("gzip", "none"):
        tool(
            "ConsoleProducer", "--bootstrap-server", servers, "--topic", "dumped",
            "--compression-codec", codec, "--reader-property", "parse.key=true", "--batch-size", 1000,
            stdin=rows,
        )  # fmt: skip
    [segment] = sorted((directory / "dumped-0").glob("*.log"))
    files = ",".join(str(segment.with_suffix(end)) for end in (".log", ".index", ".timeindex"))
    dumped = tool("DumpLogSegments", "--files", files, "--print-data-log", "--deep-iteration")
    assert len(re.findall(r"payload: v\d+", dumped)) == 6000
    assert "isvalid: false" not in dumped
    assert not re.search(r"Mismatches|mismatch|Invalid|corrupt", dumped), dumped[-2000:]


def test_the_release_of_2015_writes_and_reads() -> None:
    """The console tools of 0.8.2 use version 0 of all requests."""
    classpath = maven_classpath("kafka-0.8.2.2")
    with Broker(config=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        for codec in ("none", "gzip", "snappy", "lz4"):
            topic = f"old-{codec}"
            typed = "".join(f"v{n}\n" for n in range(100))
            codec_args = () if codec == "none" else ("--compression-codec", codec)
            for kind in ((), ("--new-producer",)):
                command = ("--broker-list", servers, "--topic", topic, *codec_args, *kind)
                java(classpath, "kafka.tools.ConsoleProducer", *command, stdin=typed, check=True)
            read = java(
                classpath, "kafka.tools.SimpleConsumerShell", "--broker-list", servers, "--topic", topic,
                "--partition", 0, "--offset", -2, "--no-wait-at-logend", check=True,
            )  # fmt: skip
            values = [line for line in lines(read.stdout) if not line.startswith("Terminating")]
            assert sorted(values) == sorted(typed.split() * 2), codec
        offsets = java(
            classpath, "kafka.tools.GetOffsetShell", "--broker-list", servers, "--topic", "old-gzip",
            "--time", -1, check=True,
        )  # fmt: skip
        assert offsets.stdout.strip() == "old-gzip:0:200"
