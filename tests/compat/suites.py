"""Public test suites that run unchanged against Penstock, instead of a Kafka container or broker.

A suite is a commit of a repository. `PENSTOCK_SUITES` may name a directory with copies of the repositories,
as ``OWNER+NAME/repo``; without it they are fetched from GitHub. This repository contains none of their code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from compat.peers import CACHE, HERE
from penstock import Broker


class Suite(NamedTuple):
    """A third-party test suite. `left_out` are tests that do not pass, each with the reason."""

    repository: str
    commit: str
    paths: tuple[str, ...]
    passes: int
    """The number of tests that must pass."""
    python: tuple[int, int] = (3, 11)
    source: str | None = None
    """The directory of the repository that is added to PYTHONPATH; None for none."""
    left_out: tuple[tuple[str, str], ...] = ()
    reaches: tuple[tuple[str, str], ...] = ()
    """Environment variables for a suite that expects a broker instead of a container.

    ``{}`` in a value stands for the broker's address.
    """
    settings: tuple[tuple[str, str], ...] = ()
    """Broker settings for a suite that expects a broker."""


REQUIREMENTS = (
    *("testcontainers==4.14.1", "kafka-python==3.0.12", "confluent-kafka==2.16.1", "requests", "pytest>=9"),
    *(
        "aiokafka[zstd,lz4,snappy]==0.14.0",
        "pytest-asyncio",
        "pytest-cov",
        "pytest-mock",
        "pytest-timeout",
        "py",
        "pymongo",
        "fastapi",
        "pydantic",
    ),
    *("pydantic_settings", "PyYAML", "jsonschema", "opentelemetry-api", "httpx", "trio", "hexkit==8.6.0"),
    *(
        "click",
        "cramjam",
        "crc32c",
        "proto-schema-parser",
        "protobuf",
        "starlette",
        "uvicorn",
        "cryptography",
    ),
)
"""The packages that the suites and Penstock import."""

SUITES = (
    Suite(
        "testcontainers/testcontainers-python",
        "c958e40ca25b77c75d9fabbd8eb05736dded5790",
        ("tests/community/kafka",),
        8,
    ),
    Suite(
        "ghga-de/hexkit",
        "64fd883967a4b5bfdcbda4ae7c92aaba5d1690cb",
        (
            "tests/integration/providers/daopubsub/test_akafka_daosub.py",
            "tests/integration/providers/eventpubsub/test_akafka_dlqsub.py",
            "tests/integration/providers/eventpubsub/test_akafka_pubsub.py",
            "tests/integration/testutils/test_akafka_testutils.py",
        ),
        72,
        left_out=(
            (
                "test_kafka_ssl",
                "its authority is for certificates of servers alone: OpenSSL refuses the client's",
            ),
        ),
    ),
    Suite(
        "steinsag/fastapi101",
        "62471edbe890697c5541db716a2ee1cba6bed498",
        ("tests/adapter/test_kafka_adapter.py",),
        1,
        python=(3, 13),
        source=".",
    ),
    Suite(
        "dpkp/kafka-python",
        "a3b3836ff3a4b34ebaa42fd93500bfcb16c1e9b7",
        ("test/integration",),
        48,
        source=".",
        left_out=(
            ("test_kafka_consumer_offsets_for_times_errors", "the test waits a minute for a time-out"),
            (
                "TestSSLConnection",
                "the tests run Apache Kafka's own start scripts, and never the broker under test",
            ),
        ),
        reaches=(("KAFKA_URI", "kafka://{}"), ("KAFKA_VERSION", "4.3.0"), ("KAFKA_ROOT", ".")),
        settings=(
            ("broker.id", "0"),
            ("group.min.session.timeout.ms", "1000"),
            ("num.partitions", "4"),
            ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
            ("allow.everyone.if.no.acl.found", "true"),
        ),
    ),
)


class RunByHand(NamedTuple):
    """A third-party suite that needs its own build and broker settings, and is therefore run by hand.

    `passes` and `rest` say what passed and what did not in the last run.
    """

    repository: str
    commit: str
    passes: str
    rest: str


RUN_BY_HAND = (
    RunByHand(
        "confluentinc/librdkafka",
        "4c3b017c3",
        "166 programs of `test-runner -Q`, at three brokers",
        "8 ask for SASL, a proxy or another protocol of groups; 0184 was cut off after 200 s",
    ),
    RunByHand(
        "segmentio/kafka-go",
        "3ce2979",
        "144 tests",
        "3 use a function that they have not set; one waits for 12 records of 8; "
        "two count on a topic not being there yet once Metadata has made it",
    ),
    RunByHand(
        "platformatic/kafka",
        "f84b496",
        "Admin, producer, consumer, SASL",
        "they count on the order of a Java map in quotas, Apache Kafka's texts, and its directory of logs",
    ),
    RunByHand(
        "confluentinc/confluent-kafka-python",
        "8b1c7a61",
        "21 of admin, consumer and producer",
        "one counts on min.insync.replicas being set for all topics, as eligible leader replicas have it",
    ),
    RunByHand(
        "IBM/sarama",
        "bd98b3ae",
        "66 functional tests, at five brokers behind toxiproxy",
        "one is switched off by Sarama",
    ),
    RunByHand(
        "twmb/franz-go",
        "adb3a18a",
        "all of kgo and kadm, but for two of SCRAM that ask for a broker of their own",
        "nothing; on processors with 50 other programs TestTxnEtl and TestShareGroupETL run out of time",
    ),
    RunByHand(
        "tulios/kafkajs",
        "55b0b416",
        "672 specs of admin, broker, cluster, consumer, producer and network, with TLS, SASL and ACLs",
        "5 join with a rebalance timeout of 0 ms, which ends before SyncGroup; 4 count on lists, settings "
        "and checks of Kafka 2.4; 1 runs docker; 1 asks a name server",
    ),
    RunByHand(
        "fede1024/rust-rdkafka",
        "cf08f6c1",
        "49 integration tests",
        "one counts on a topic taking more than 100 ms to be created",
    ),
    RunByHand(
        "aio-libs/aiokafka",
        "672947af",
        "974 tests against aiokafka 0.14.0, with TLS, SASL, ACLs and transactions; the tests' SCRAM users "
        "were made with a request for each mechanism",
        "2 ask for Kerberos; one counts 3 heartbeats by time, and had 2 on a busy machine; 104 were skipped",
    ),
    RunByHand(
        "influxdata/rskafka",
        "9e0dad6",
        "43 integration tests, at three brokers",
        "15 ask for Java's client; one, of TLS, is switched off by rskafka; SASL and SOCKS were not set up",
    ),
    RunByHand(
        "ThreeDotsLabs/watermill-kafka",
        "8bccba2",
        "all tests of its publisher and its four kinds of subscribers, at three brokers",
        "nothing; what a kind does not promise, Watermill skips",
    ),
    RunByHand("lovoo/goka", "b885615", "19 system tests, at three brokers", "nothing"),
    RunByHand(
        "deviceinsight/kafkactl",
        "9005d01",
        "142 integration tests, at three brokers with SASL and ACLs, and a schema registry",
        "nothing",
    ),
    RunByHand(
        "confluentinc/confluent-kafka-go",
        "b88333d3",
        "44 integration tests against 2.15.0",
        "one flushes for -1 ms, which the client takes for no time at all",
    ),
    RunByHand("oleksiyk/kafka", "c36bdeb", "89 specs, with TLS", "nothing"),
    RunByHand(
        "SOHU-Co/kafka-node",
        "fcc8aef",
        "268 specs as Kafka 2.0, with TLS and SASL",
        "2 count on Apache Kafka's texts; one on a new topic whose name the suite has used before; 3 hooks "
        "ran out of time, on processors with 20 other programs",
    ),
    RunByHand(
        "zendesk/ruby-kafka",
        "de2ac2a",
        "75 functional specs as Kafka 0.11, at three brokers",
        "Snappy, LZ4 and Zstandard, and metrics agents were not installed; one is pending",
    ),
    RunByHand(
        "CallistoLabsNYC/samsa",
        "33062fc",
        "16 integration tests, at two brokers",
        "one does not look at the length of records, and takes the next partition for a batch; two of a "
        "million messages were not run",
    ),
    RunByHand(
        "kafka-rust/kafka-rust",
        "6c9c1f2",
        "11 of 12 integration tests, without compression, with Snappy, and with GZIP",
        "one loses a topic's messages where a partition before them is empty; TLS was not run",
    ),
    RunByHand(
        "quixio/quix-streams",
        "dfb63318",
        "217 tests of Kafka clients and topics, with `--penstock-containers`; 932 more, at a broker",
        "6 stop a process after one second, before it has started; Postgres was not run, nor 3 directories",
    ),
    RunByHand(
        "ag2ai/faststream",
        "7c9a125d",
        "542 tests of aiokafka and confluent-kafka that ask for a broker",
        "nothing; 146 tests were skipped, because packages of other brokers were not installed",
    ),
    RunByHand(
        "celery/kombu", "9ee8595b", "32 integration tests", "one is skipped: fanout is not implemented"
    ),
    RunByHand(
        "Parsely/pykafka",
        "e7665bf",
        "151 tests as Kafka 0.10.2, at three brokers beside a ZooKeeper, with TLS",
        '104 are skipped: most need pykafka\'s C extension, or are marked "Unresolved crashes" by pykafka',
    ),
    RunByHand(
        "kafka4beam/kafka_protocol",
        "946a0de",
        "199 tests at the newest release and at 2.8, and all of 1.1, 0.11, 0.10 and 0.9, with TLS and SASL",
        "`conn_timeout_test` needs an address to which TCP connections time out: 1.1.1.1 accepted them",
    ),
    RunByHand(
        "kafka4beam/brod",
        "33075eb",
        "97 cases, at two brokers with TLS and SASL",
        "2 tests of `brod_txn_processor_SUITE` fail with the same errors against Apache Kafka 3.9.1",
    ),
    RunByHand(
        "segmentio/topicctl",
        "9c1f75c",
        "43 tests of topics, reassignments, throttles, elections, groups, users and ACLs, at six brokers in "
        "three racks; those of `apply` and `check` without ZooKeeper's address",
        "17 ask for a ZooKeeper; `TestApplyThrottles` counts on a throttle being kept that is set already, "
        "which topicctl does by ZooKeeper only",
    ),
    RunByHand(
        "bytewax/bytewax",
        "9fce5b6e",
        "5 tests of its Kafka source and sink, against bytewax 0.21.1",
        "one counts on a topic not being there yet once Metadata has made it",
    ),
    RunByHand("SeaQL/sea-streamer", "4c0bedb", "its test of consumers", "nothing"),
)


def environment() -> Path:
    """Return the interpreter of a virtual environment with all packages that the suites import."""
    digest = hashlib.sha256("\n".join(REQUIREMENTS).encode()).hexdigest()[:12]
    target = CACHE / f"suites-{digest}"
    python = target / "bin" / "python"
    if not (target / ".installed").exists():
        shutil.rmtree(target, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *REQUIREMENTS], check=True)
        (target / ".installed").touch()
    return python


def fetched(suite: Suite, directory: Path) -> Path:
    """Check out a suite's commit into a directory; return the directory."""
    copies = os.environ.get("PENSTOCK_SUITES")
    url = f"https://github.com/{suite.repository}"
    if copies is not None:
        url = str(Path(copies) / suite.repository.replace("/", "+") / "repo")
    git = ["git", "-C", str(directory)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "fetch", "--quiet", "--depth", "1", url, suite.commit], check=True)
    subprocess.run([*git, "checkout", "--quiet", "FETCH_HEAD"], check=True)
    return directory


def run(suite: Suite, directory: Path) -> tuple[int, str]:
    """Run a suite with emulated containers or a broker; return how many tests passed, and pytest's output."""
    place = fetched(suite, directory)
    paths = [str(HERE.parents[1] / "src"), *([str(place / suite.source)] if suite.source else [])]
    command = [str(environment()), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if not suite.reaches:
        command += ["-p", "penstock.testing.plugin", "--penstock-containers"]
    if suite.left_out:
        command += ["-k", f"not ({' or '.join(name for name, _ in suite.left_out)})"]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "default"}
    with contextlib.ExitStack() as stack:
        if suite.reaches:
            broker = stack.enter_context(Broker(config=dict(suite.settings)))
            given |= {name: text.format(broker.bootstrap_servers) for name, text in suite.reaches}
        done = subprocess.run(
            [*command, *suite.paths], cwd=place, env=given, capture_output=True, text=True, check=False
        )
    found = re.search(r"(\d+) passed", done.stdout)
    printed = done.stdout[-6000:] + done.stderr[-2000:]
    return (int(found[1]) if found and done.returncode == 0 else 0), printed
