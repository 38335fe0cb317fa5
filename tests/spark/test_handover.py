"""Tests of reading checkpoints of Spark and its Kafka connector; other formats are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from penstock.cli.commands import run
from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.spark.handover import FILE_BYTES_MAX, copy_for_kafka, read_checkpoint

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def checkpoint(
    directory: Path,
    batches: list[list[str]],
    *,
    through: int = 0,
    begins: dict[str, bytes] | None = None,
    version: str = "v1",
) -> Path:
    """Write a checkpoint with the lines of each micro-batch; the first `through` ones are completed."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True)
    (directory / "metadata").write_text('{"id":"0f4a"}')
    for number, lines in enumerate(batches):
        (directory / "offsets" / str(number)).write_text("\n".join([version, SETTINGS, *lines]))
    for number in range(through):
        (directory / "commits" / str(number)).write_text("v1\n{}")
    for name, begin in (begins or {}).items():
        (directory / "sources" / name).mkdir(parents=True)
        (directory / "sources" / name / "0").write_bytes(begin)
        (directory / "sources" / name / ".0.crc").write_bytes(b"crc")
    return directory


def files(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_query_that_has_got_going_changes_its_source_as_it_is(tmp_path: Path) -> None:
    path = checkpoint(
        tmp_path / "q",
        [['{"a":{"0":5,"1":5}}', '{"logOffset":3}'], ['{"a": {"0": 7, "1": 9}}', "-"]],
        through=1,
        begins={"0": b'\0v1\n{"a":{"0":0,"1":2}}'},
    )
    found = read_checkpoint(path)
    assert (found.query_id, found.planned, found.committed) == ("0f4a", 1, 0)
    assert [source.end for source in found.sources] == [{A0: 7, A1: 9}, None]
    assert found.advice() == [
        "Change the format and keep this checkpoint: either source goes on from here; "
        "micro-batch 1 is run again."
    ]
    with pytest.raises(ConfigError, match="needs no copy"):
        copy_for_kafka(path, tmp_path / "copy")


def test_sources_with_names_are_known_by_them(tmp_path: Path) -> None:
    lines = ['orders:{"a":{"0":5}}', '1:{"b":{"0":6}}']
    begins = {"orders": b'\0v1\n{"a":{"0":1}}', "1": b'{"b":{"0":2}}'}
    found = read_checkpoint(checkpoint(tmp_path / "q", [lines], begins=begins, version="v2"))
    assert [(source.name, source.end, source.begin) for source in found.sources] == [
        ("orders", {A0: 5}, {A0: 1}),
        ("1", {TopicPartition("b", 0): 6}, {TopicPartition("b", 0): 2}),
    ]


def test_a_first_micro_batch_of_the_connector_is_finished_with_starting_offsets(tmp_path: Path) -> None:
    begins = {"0": b'\0v1\n{"a":{"0":1,"1":2}}'}
    for batches in ([['{"a":{"0":5,"1":5}}']], []):
        path = checkpoint(tmp_path / f"q{len(batches)}", batches, begins=begins)
        advice = " ".join(read_checkpoint(path).advice())
        assert 'startingOffsets until one is: {"a":{"0":1,"1":2}}' in advice
        assert "--for-kafka" not in advice


def test_a_first_micro_batch_of_ours_is_finished_by_the_connector_from_a_copy(tmp_path: Path) -> None:
    # The connector has tried, and written where the topic ended by then.
    begins = {"0": b'\0v1\n{"a":{"0":50,"1":50}}'}
    path = checkpoint(tmp_path / "q", [['{"a": {"0": 5, "1": 6}, "(begins here)": {}}']], begins=begins)
    before = files(path)
    advice = " ".join(read_checkpoint(path).advice())
    assert "--for-kafka COPY" in advice
    assert "startingOffsets" not in advice
    assert run(["spark", "checkpoint", str(path), "--for-kafka", str(tmp_path / "copy")]) == 0
    assert files(path) == before
    after = files(tmp_path / "copy")
    assert after.pop("sources/0/0") == b'\0v1\n{"a":{"0":5,"1":6}}'
    # Hadoop's checksum belongs to what is replaced.
    assert after == {name: data for name, data in before.items() if not name.startswith("sources/")}
    assert read_checkpoint(tmp_path / "copy").advice() == ["No micro-batch is through."]
    with pytest.raises(ConfigError, match="is there already"):
        copy_for_kafka(path, tmp_path / "copy")


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkpoint(tmp_path / "q", [['{"a":{"0":5},"(begins here)":{}}']])
    monkeypatch.setattr("penstock.spark.handover.os.fsync", lambda _: (_ for _ in ()).throw(OSError()))
    with pytest.raises(OSError):  # noqa: PT011
        copy_for_kafka(path, tmp_path / "copy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["q"]


def test_a_beginning_that_is_nowhere_is_not_made_up(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "q", [['{"a":{"0":5}}']])
    assert "does not say where source 0 began" in " ".join(read_checkpoint(path).advice())
    with pytest.raises(ConfigError, match="does not say where source 0 began"):
        copy_for_kafka(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


REFUSED = {
    "version": ("offsets/0", b"v3\n{}\n{}", "version 'v3'"),
    "no JSON": ("offsets/0", b'v1\n{}\n{"a":', "no JSON"),
    "nested": ("offsets/0", b"v1\n{}\n" + b"[" * 100_000, "no JSON"),
    "no text": ("offsets/0", b"\xff\xfe", "cannot be read"),
    "empty": ("offsets/0", b"v1", "ends after its version"),
    "query": ("metadata", b"[]", "names no query"),
    "file of the connector": ("sources/0/0", b"\0v2\n{}", "version 'v2'"),
    "offsets of the connector": ("sources/0/0", b'\0v1\n{"a":{"0":"x"}}', "no offsets per topic"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_before_anything_is_written(case: str, tmp_path: Path) -> None:
    name, content, message = REFUSED[case]
    path = checkpoint(tmp_path / "q", [['{"a":{"0":5},"(begins here)":{}}']], begins={"0": b'{"a":{"0":1}}'})
    (path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        copy_for_kafka(path, tmp_path / "copy")
    assert [entry.name for entry in tmp_path.iterdir()] == ["q"]


def test_files_of_any_size_are_not_read_whole(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "q", [['{"a":{"0":5}}']])
    with (path / "offsets" / "0").open("r+b") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(ConfigError, match="larger than"):
        read_checkpoint(path)


def test_a_directory_without_a_checkpoint_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no checkpoint"):
        read_checkpoint(tmp_path)


def test_the_command_shows_where_each_source_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint(tmp_path / "q", [['{"a":{"0":5,"1":6},"b":{"0":7}}', '{"logOffset":3}']], through=1)
    assert run(["spark", "checkpoint", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "a: 2 partitions, ends at 0:5, 1:6\n  b: 1 partition, ends at 0:7" in shown
    assert "source 1\n  of another kind" in shown
    assert run(["spark", "checkpoint", str(path), "-J"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sources"][0]["end"] == {"a": {"0": 5, "1": 6}, "b": {"0": 7}}
    assert (document["planned"], document["through"]) == (0, 0)


def test_looking_at_a_checkpoint_needs_no_spark() -> None:
    import subprocess

    code = "import sys, penstock.spark.handover; print({'pyspark', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
