from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.errors import ConfigError, StorageError
from penstock.model import TopicPartition
from penstock.spark.monitoring import checkpoint as module
from penstock.spark.monitoring.checkpoint import is_checkpoint, standing_of

ORDERS = TopicPartition("orders", 0)


def write_checkpoint(
    directory: Path, *ends: int, done: int | None = None, query_id: str = "id-1", at: float = 1_000.0
) -> Path:
    """Write a checkpoint as Spark does, with one partition and a micro-batch for each of `ends`."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "metadata").write_text(json.dumps({"id": query_id}))
    for batch, end in enumerate(ends):
        line = json.dumps({"orders": {"0": end}})
        (directory / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{line}')
    for batch in range(len(ends) if done is None else done):
        path = directory / "commits" / str(batch)
        path.write_text("v1\n{}")
        os.utime(path, (at + batch, at + batch))
    return directory


def test_a_query_stands_where_its_last_batch_ended(tmp_path: Path) -> None:
    standing = standing_of(write_checkpoint(tmp_path, 10, 25, 40, done=2))
    assert (standing.query_id, standing.batch_id, standing.planned_id) == ("id-1", 1, 2)
    assert (standing.offsets, standing.position, standing.done_at) == ({ORDERS: 25}, 25, 1_001.0)


def test_a_query_that_has_just_begun_stands_nowhere(tmp_path: Path) -> None:
    standing = standing_of(write_checkpoint(tmp_path, 10, done=0))
    assert (standing.batch_id, standing.planned_id, standing.offsets) == (None, 0, {})


def test_sources_of_other_kinds_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10)
    (tmp_path / "offsets" / ".0.crc").write_bytes(b"crc")
    lines = ["v1", "{}", '{"logOffset":3}', "-", "7", '{"orders":{"1":5}}']
    (tmp_path / "offsets" / "0").write_text("\n".join(lines))
    assert standing_of(tmp_path).offsets == {TopicPartition("orders", 1): 5}


def test_offsets_that_spark_has_removed_meanwhile_are_none(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10)
    (tmp_path / "offsets" / "0").unlink()
    assert standing_of(tmp_path).offsets == {}


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path)
    with pytest.raises(ConfigError, match=r"no checkpoint of a streaming query.*checkpointLocation"):
        standing_of(tmp_path)
    write_checkpoint(tmp_path, 10)
    (tmp_path / "metadata").write_text("[]")
    with pytest.raises(ConfigError, match="holds no id of a query"):
        standing_of(tmp_path)


def test_a_form_that_is_not_known_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10)
    (tmp_path / "offsets" / "0").write_text("v9\n{}\n{}")
    with pytest.raises(ConfigError, match="version 'v9'"):
        standing_of(tmp_path)


def test_files_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_BYTES_MAX", 100)
    write_checkpoint(tmp_path, 10)
    (tmp_path / "offsets" / "0").write_text("v1\n" + " " * 100)
    with pytest.raises(StorageError, match="larger than 100 bytes"):
        standing_of(tmp_path)
