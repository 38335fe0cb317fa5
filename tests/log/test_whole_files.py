"""Tests of files that are written under a temporary name and then renamed: no error leaves a partial file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch
from penstock.common.atomic_files import write_whole
from penstock.errors import StorageError
from penstock.log.directory.checkpoint import write_offsets
from penstock.log.directory.epoch_checkpoint import load_epochs, new_epochs
from penstock.log.directory.files import write_text
from penstock.log.directory.identity_files import MetaProperties, write_meta_properties, write_topic_id
from penstock.model import TopicPartition


def snapshot(directory: Path, number: int) -> None:
    producers = Producers(1000)
    producers.record(number, 0, SeenBatch(0, number, 0, number, 0), 0)
    ProducerSnapshots(str(directory)).save(7, producers)


def epochs(directory: Path, number: int) -> None:
    new_epochs(str(directory / "leader-epoch-checkpoint")).assign(number, number)


WRITERS: dict[str, Callable[[Path, int], object]] = {
    "text": lambda place, n: write_text(str(place / "x"), f"text {n}\n", sync=True),
    "checkpoint": lambda place, n: write_offsets(str(place / "x"), {TopicPartition("t", n): n}),
    "epochs": epochs,
    "meta.properties": lambda place, n: write_meta_properties(str(place), MetaProperties("c", n)),
    "partition.metadata": lambda place, n: write_topic_id(str(place), bytes([n]) * 16),
    "producers": snapshot,
    "durable": lambda place, n: write_whole(
        place / "x", lambda hidden: hidden.write_text(f"text {n}\n") and None
    ),
}
CALLS = ("open", "write", "fsync", "replace", "rename", "close")


def disk_full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [MemoryError, disk_full, lambda: ValueError("odd"), KeyboardInterrupt])
@pytest.mark.parametrize("writer", list(WRITERS))
def test_an_error_at_any_step_leaves_the_old_file_or_the_new(
    writer: str, error: Callable[[], BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    WRITERS[writer](tmp_path, 1)
    (path,) = tmp_path.iterdir()
    old = path.read_bytes()
    (tmp_path / "other").mkdir()
    WRITERS[writer](tmp_path / "other", 2)
    new = next((tmp_path / "other").iterdir()).read_bytes()
    count, at, steps = 0, -1, 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                if call.__name__ == "close":
                    call(*args)
                raise error()
            return call(*args, **kwargs)

        return wrapped

    for name in CALLS:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    for at in range(1, 20):
        path.write_bytes(old)
        count = 0
        try:
            WRITERS[writer](tmp_path, 2)
        except (StorageError, type(error())):
            steps += 1
        if count < at:
            break
        assert path.read_bytes() in (old, new)
        assert {child.name for child in tmp_path.iterdir()} == {path.name, "other"}, "nothing is left behind"
    assert steps >= 3


def test_epochs_that_cannot_be_written_have_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = new_epochs(str(tmp_path / "leader-epoch-checkpoint"))
    known.assign(1, 0)
    known.assign(2, 10)

    def refuse(*args: object) -> None:
        raise disk_full()

    monkeypatch.setattr(os, "replace", refuse)
    for change in (
        lambda: known.assign(3, 20),
        lambda: known.truncate_end(5),
        lambda: known.truncate_start(7),
    ):
        with pytest.raises(StorageError, match="full"):
            change()
        assert known.entries == [(1, 0), (2, 10)]
    assert load_epochs(str(tmp_path / "leader-epoch-checkpoint")).entries == known.entries
