"""Tests of removing the directories of deleted partitions: a few at once, the others in a thread."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.log.directory import removal
from penstock.log.directory.removal import INLINE_S, Remover


def make(path: Path) -> str:
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").write_bytes(b"x")
    (path / "00000000000000000000.log").write_bytes(b"x" * 100)
    return str(path)


def test_one_directory_is_gone_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "a-delete")
    Remover().remove(path)
    assert not os.path.exists(path)


def test_what_exceeds_the_share_of_a_second_is_removed_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    names: list[str] = []
    remove = removal.remove_directory

    def slow(path: str, *rest: Callable[[], bool]) -> bool:
        nonlocal now
        now += INLINE_S / 3.5
        names.append(threading.current_thread().name)
        return remove(path, *rest)

    monkeypatch.setattr(removal, "remove_directory", slow)
    remover = Remover(lambda: now)
    paths = [str(tmp_path / f"{number}-delete") for number in range(20)]
    for path in paths:
        os.mkdir(path)
    for path in paths:
        remover.remove(path)
    remover.wait()
    assert not any(map(os.path.exists, paths))
    inline = [name for name in names if name == threading.current_thread().name]
    assert len(inline) == 4
    assert names.count("penstock-remover") == 16


def test_what_cannot_be_removed_is_told_and_holds_up_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "INLINE_S", 0.0)
    remover = Remover()
    there = make(tmp_path / "there-delete")
    with caplog.at_level(logging.WARNING, "penstock.log"):
        remover.remove(str(tmp_path / "gone-delete"))
        remover.remove(there)
        remover.wait()
    assert not os.path.exists(there)
    assert "it is tried again later, or at the next start" in caplog.text


def test_what_could_not_be_removed_is_removed_by_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remover = Remover()
    unlink = removal.remove_file
    with monkeypatch.context() as patched:
        patched.setattr(removal, "remove_file", lambda path: unlink(path + ".odd/there/is/none"))
        patched.setattr(os, "rmdir", lambda path: (_ for _ in ()).throw(OSError(5, "odd")))
        with pytest.raises(StorageError):
            remover.remove(make(tmp_path / "a-delete"))
        remover.retry()
        remover.wait()
    assert (tmp_path / "a-delete").exists()
    remover.retry()
    remover.wait()
    assert not (tmp_path / "a-delete").exists()


def test_an_error_at_once_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        Remover().remove(str(tmp_path / "gone-delete"))


def test_a_stop_waits_for_the_file_at_hand_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "INLINE_S", 0.0)
    begun, may_go_on = threading.Event(), threading.Event()
    unlink = removal.remove_file

    def held(path: str) -> None:
        begun.set()
        assert may_go_on.wait(30)
        unlink(path)

    monkeypatch.setattr(removal, "remove_file", held)
    remover = Remover()
    for number in range(3):
        remover.remove(make(tmp_path / f"{number}-delete"))
    assert begun.wait(30)
    stopper = threading.Thread(target=remover.stop)
    stopper.start()
    assert remover._stopping.wait(30)
    may_go_on.set()
    stopper.join(30)
    assert not stopper.is_alive()
    left = [len([*path.rglob("*")]) for path in sorted(tmp_path.iterdir())]
    assert left == [2, 3, 3], "one file is gone, of the first directory"
