"""Tests of the class `Diaries`, which finds violations in the event files of killed group members."""

from __future__ import annotations

from pathlib import Path

from broker.kills.diaries import Diaries

FINISHED = "S 2 0 7 accept 1\nA 3 0 7 7\n"


def diaries(directory: Path, *members: str, given: str | None = None) -> Diaries:
    files = []
    for number, lines in enumerate(members):
        files.append(directory / f"member-{number}")
        files[-1].write_text(lines)
    place = None
    if given is not None:
        place = directory / "given"
        place.write_text(given)
    return Diaries(files, {}, place)


def test_a_record_given_after_it_was_finished_is_a_fault(tmp_path: Path) -> None:
    found = diaries(tmp_path, FINISHED, "D 4 5 0 7 1\n", given="1 0 0 9 1\n3.5 0 7 7 1\n")
    assert found.share_faults() == ["(0, 7) came again, 0.500 s after it was finished"]


def test_a_poll_may_return_what_was_given_before_another_member_finished_it(tmp_path: Path) -> None:
    found = diaries(tmp_path, FINISHED, "D 4 5 0 7 1\n", given="1 0 0 9 1\n2 0 7 7 1\n")
    assert found.share_faults() == []


def test_polls_count_where_brokers_note_nothing(tmp_path: Path) -> None:
    found = diaries(tmp_path, FINISHED, "D 4 5 0 7 1\n")
    assert found.share_faults() == ["(0, 7) came again, 1.000 s after it was finished"]


def test_what_was_released_comes_with_a_higher_count(tmp_path: Path) -> None:
    released = "S 2 0 7 release 1\nA 3 0 7 7\n"
    assert diaries(tmp_path, released, given="1 0 7 7 1\n4 0 7 7 2\n").share_faults() == []
    assert diaries(tmp_path, released, given="1 0 7 7 1\n4 0 7 7 1\n").share_faults() == [
        "(0, 7) came with count 1 after 1 was released"
    ]
