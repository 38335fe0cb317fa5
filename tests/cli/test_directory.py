"""Tests of ``penstock directory``, which describes a data directory and sets the Kafka release it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Admin, Broker
from penstock.cli import main


def test_a_directory_is_described_and_set_to_a_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker(data_dir=tmp_path / "data"):
        pass
    assert main(["directory", "describe", str(tmp_path / "data")]) == 0
    first, features, topics, releases = capsys.readouterr().out.splitlines()
    assert first.startswith("cluster ")
    assert features == "group.version 1, metadata.version 25, transaction.version 2"
    assert topics == "0 topics; stopped in order"
    assert releases == "Apache Kafka that starts on it: 4.0, 4.1, 4.2, 4.3, 4.4"
    assert main(["directory", "set-level", str(tmp_path / "data"), "3.9"]) == 0
    assert "\nmetadata.version 21\n" in capsys.readouterr().out
    assert main(["directory", "set-level", str(tmp_path / "data"), "3.1"]) == 2
    assert "'3.1' is no release" in capsys.readouterr().err
    assert main(["directory", "describe", str(tmp_path)]) == 2
    assert "is no data directory" in capsys.readouterr().err


def test_topics_that_keep_apache_kafka_from_starting_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data")
    with Broker(data_dir=data) as broker, Admin(broker.bootstrap_servers) as admin:
        for number in range(7):
            admin.create_topic(f"t{number}", 1, config={"segment.bytes": "1000"})
    assert main(["directory", "describe", data]) == 0
    releases, reason = capsys.readouterr().out.splitlines()[-2:]
    assert releases == "Apache Kafka that starts on it: none"
    assert reason == (
        "Apache Kafka 4.x does not start on it: segment.bytes is below 1048576 in t0, t1, t2, t3, t4 and 2 "
        f"more topics; to raise it: penstock directory set-level {data} 4.0"
    )
    assert main(["directory", "set-level", data, "4.0"]) == 0
    assert (
        capsys.readouterr().out.splitlines()[-1] == "Apache Kafka that starts on it: 4.0, 4.1, 4.2, 4.3, 4.4"
    )
