"""Tests of the files that commands read and write: closed standard streams, devices, pipes and links."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.cli import main
from penstock.cli.consume import ConsumeRun
from penstock.cli.positions import parse_span


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(num_partitions=1) as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"value", timestamp=1).result()
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("words", "closed", "code", "said"),
    [
        ("consume -t t -e", "<&-", 0, "value\n"),
        ("consume -t t -e", ">&-", 0, ""),
        ("topic list", ">&-", 0, ""),
        ("produce -t t", "<&-", 0, ""),
        ("topic describe no", "2>&-", 1, ""),
        ("topic list", "<&- >&- 2>&-", 0, ""),
    ],
)
def test_a_closed_stream_has_nothing_to_read_and_takes_what_is_written(
    servers: str, words: str, closed: str, code: int, said: str
) -> None:
    command = f"exec {sys.executable} -m penstock {words} -b {servers} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, said)
    assert "bug" not in done.stderr


def write_csv(servers: str, path: Path | str) -> int:
    return main(["consume", "-t", "t", "-e", "-q", "-b", servers, "-f", "csv", "--output", str(path)])


def test_a_pipe_is_written_to_and_stays(servers: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    thread.start()
    assert write_csv(servers, path) == 0
    thread.join(10)
    assert read[0].endswith(b'"value",\n')
    assert path.is_fifo()


def test_dev_stdout_is_stdout(servers: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert write_csv(servers, "/dev/stdout") == 0
    assert capfdbinary.readouterr().out.endswith(b'"value",\n')
    assert Path("/dev/stdout").is_symlink()


def test_a_link_stays_one(servers: str, tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    file.write_text("before")
    link.symlink_to(file)
    assert write_csv(servers, link) == 0
    assert link.is_symlink()
    assert file.read_text().endswith('"value",\n')
    assert sorted(tmp_path.iterdir()) == [file, link]


@pytest.mark.parametrize(("wrong", "near"), [("tpoic", "topic"), ("consum", "consume"), ("topics", "topic")])
def test_a_misspelt_command_is_told_the_nearest(
    wrong: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([wrong, "list"]) == 2
    assert f"No such command '{wrong}'. Did you mean '{near}'?" in capsys.readouterr().err


@pytest.mark.parametrize("count", [2, 9])
def test_a_topic_that_is_created_anew_is_printed_from_its_beginning_and_comes_to_an_end(
    servers: str, count: int
) -> None:
    topic = f"anew-{count}"
    tp = TopicPartition(topic, 0)
    with Admin(servers) as admin:
        admin.create_topic(topic)
    with Producer(servers) as producer:
        for number in range(5):
            producer.send(topic, b"old%d" % number)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        reading = ConsumeRun(consumer, [tp], parse_span(()), exit_at_end=True, quiet=True)
        with Admin(servers) as admin:
            admin.delete_topics([topic])
            admin.create_topic(topic)
        with Producer(servers) as producer:
            for number in range(count):
                producer.send(topic, b"new%d" % number)
        output = io.BytesIO()
        reading.print_to(output, lambda record: (record.value or b"") + b" ", None, unbuffered=False)
    printed = output.getvalue().split()
    assert printed == [b"new%d" % number for number in range(min(count, 5))]
