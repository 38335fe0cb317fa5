"""Clients in other languages: test programs with sarama, kafkajs and kcat check their own results."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.peers import go_program, need, node_program
from compat.places import THREE_AND_AGAIN_ONE, made

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module", params=THREE_AND_AGAIN_ONE)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with made(request.param, tmp_path_factory.mktemp("data"), SETTINGS) as broker:
        yield broker.bootstrap_servers.partition(",")[0]  # the programs take one address


def run(*command: object, stdin: str = "", timeout_s: float = 300) -> str:
    """Run a program and return its standard output. Fail the test if the program fails."""
    done = subprocess.run(
        list(map(str, command)), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("part", "oks"),
    # every codec with and without idempotence, offsets, admin; five releases; assignors
    [("records", 12), ("old", 20), ("groups", 3), ("old groups", 2)],
)
def test_sarama(servers: str, part: str, oks: int) -> None:
    printed = run(go_program("sarama"), servers, part)
    assert printed.count("ok ") == oks, printed


def test_kafkajs(servers: str) -> None:
    directory = node_program("kafkajs")
    printed = run(need("node"), directory / "main.js", servers, "records", "administer", "groups")
    assert printed.count("ok ") == 12, printed


def test_kcat(servers: str, tmp_path: Path) -> None:
    kcat = need("kcat")
    lines = "".join(f"k{n}:v{n}\n" for n in range(100))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = f"kcat-{codec}"
        run(kcat, "-b", servers, "-P", "-t", topic, "-K:", "-z", codec, "-H", "h=1", stdin=lines)
        read = run(kcat, "-b", servers, "-C", "-t", topic, "-e", "-q", "-f", "%k:%s %h %p/%o\n")
        assert read == "".join(f"k{n}:v{n} h=1 0/{n}\n" for n in range(100)), codec
    listed = run(kcat, "-b", servers, "-L")
    assert 'topic "kcat-zstd" with 1 partitions' in listed
    assert run(kcat, "-b", servers, "-Q", "-t", "kcat-none:0:-1").strip() == "kcat-none [0] offset 100"
    group = ("-G", "kcat-group", "-X", "auto.offset.reset=earliest", "-X", "enable.partition.eof=true")
    grouped = run(kcat, "-b", servers, *group, "-e", "-q", "-f", "%s\n", "kcat-gzip")
    assert grouped == "".join(f"v{n}\n" for n in range(100))


def test_franz_go(servers: str) -> None:
    printed = run(go_program("franz"), servers)
    assert printed.count("ok round trip") == 13, printed  # every codec, idempotent or not, and three releases
    assert printed.count("ok describe group") == 4, printed
