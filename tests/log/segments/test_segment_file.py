"""Tests of a segment's file: when it is open, and its contents after a failed write."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.common import operating_system
from penstock.errors import StorageError
from penstock.log.directory.files import identity_of
from penstock.log.segments.segment_file import SegmentFile


def made(tmp_path: Path, data: bytes = b"") -> SegmentFile:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    return SegmentFile(str(path), is_writable=True)


def test_a_file_that_is_not_kept_is_closed_with_its_last_user(tmp_path: Path) -> None:
    segment = made(tmp_path, b"abc")
    first = segment.opened(keep=False)
    second = segment.opened(keep=False)
    assert first is second
    number = first.fileno()
    del first, second
    again = segment.opened(keep=False)
    assert again.fileno() == number, "it was closed, and its number is free"


def test_a_file_that_is_kept_is_lent_on_after_its_release(tmp_path: Path) -> None:
    segment = made(tmp_path, b"abc")
    kept = segment.opened(keep=True)
    segment.release()
    assert segment.opened(keep=False) is kept


def test_identity_is_that_of_the_open_file(tmp_path: Path) -> None:
    segment = made(tmp_path)
    path = Path(segment.path)
    segment.opened(keep=True)
    path.rename(tmp_path / "moved")
    path.write_bytes(b"another")
    assert segment.identity == identity_of(str(tmp_path / "moved"))
    segment.release()
    assert segment.identity == identity_of(str(path))


def test_a_write_that_fails_is_cut_off_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = made(tmp_path, b"whole")
    write, calls = operating_system.pwrite, []

    def torn(fd: int, data: bytes, position: int) -> int:
        calls.append(position)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "full")
        return write(fd, bytes(data)[:2], position)

    monkeypatch.setattr(operating_system, "pwrite", torn)
    with pytest.raises(StorageError, match="cannot append to"):
        segment.write(b"batch", 5, 5)
    assert calls == [5, 7]
    assert Path(segment.path).read_bytes() == b"whole"
    monkeypatch.undo()
    segment.write(b"batch", 5, 5)
    segment.cut(7)
    assert Path(segment.path).read_bytes() == b"wholeba"
