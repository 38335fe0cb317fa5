"""Tests of metadata log snapshots: they are written and read completely; damaged ones are ignored."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.log.directory.metadata_snapshots import (
    RECORDS_PER_BATCH,
    QuorumVoters,
    first_voters,
    newest_whole,
    read_snapshot,
    snapshots_in,
    write_first_voters,
    write_snapshot,
)
from penstock.protocol.messages.k_raft_version_record import KRaftVersionRecord
from penstock.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from penstock.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from penstock.protocol.messages.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import split_batches

NOW_MS = 1_700_000_000_000

VALUES = [b"\1\x0c\0%d" % number for number in range(RECORDS_PER_BATCH + 7)]


def written(
    directory: Path, end_offset: int, values: list[bytes] = VALUES, quorum: QuorumVoters | None = None
) -> Path:
    file = write_snapshot(
        str(directory),
        end_offset,
        4,
        values,
        quorum=quorum or QuorumVoters(),
        last_timestamp_ms=1,
        now_ms=NOW_MS,
    )
    return Path(file.path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    quorum = QuorumVoters(b"version", b"voters")
    path = written(tmp_path, 1234, quorum=quorum)
    assert path.name == "00000000000000001234-0000000004.checkpoint"
    [file] = snapshots_in(str(tmp_path))
    found = read_snapshot(file)
    assert (list(found.values), found.quorum, found.end_offset, found.epoch) == (VALUES, quorum, 1234, 4)


def test_header_and_footer_are_kafkas(tmp_path: Path) -> None:
    data = written(tmp_path, 10, []).read_bytes()
    header, footer = (
        decode_batch(data, start, end, "x", 0)[0].value for start, end, _ in split_batches(data)
    )
    assert header == SnapshotHeaderRecord(version=0, last_contained_log_timestamp=1).encode(0)
    assert footer == SnapshotFooterRecord(version=0).encode(0)


def test_the_newest_within_the_log_counts(tmp_path: Path) -> None:
    for end_offset in (10, 20, 30):
        written(tmp_path, end_offset)
    for name in (
        "00000000000000000040-0000000004.checkpoint.deleted",
        "00000000000000000040-0000000004-x.part",
    ):
        (tmp_path / name).write_bytes(b"")
    directory = str(tmp_path)

    def end_offset(*bounds: int) -> int | None:
        found = newest_whole(directory, *bounds)
        return None if found is None else found.end_offset

    assert end_offset() == 30
    assert end_offset(0, 29) == 20
    assert end_offset(10, 19) == 10
    assert end_offset(31) is None


@pytest.mark.parametrize("cut", [1, 40, 5000])
def test_one_that_is_not_whole_is_passed_over(
    cut: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, 10)
    torn = written(tmp_path, 20)
    torn.write_bytes(torn.read_bytes()[:-cut])
    with caplog.at_level(logging.WARNING):
        found = newest_whole(str(tmp_path))
    assert found is not None
    assert found.end_offset == 10
    assert torn.name in caplog.text
    [file, _] = snapshots_in(str(tmp_path))
    with pytest.raises(StorageError, match=r"damaged|no whole snapshot"):
        read_snapshot(file)


def test_every_bit_counts(tmp_path: Path) -> None:
    path = written(tmp_path, 10, VALUES[:3])
    data = path.read_bytes()
    [file] = snapshots_in(str(tmp_path))
    for position in range(21, len(data), 7):
        path.write_bytes(data[:position] + bytes((data[position] ^ 0x10,)) + data[position + 1 :])
        try:
            found = read_snapshot(file)
        except StorageError:
            continue
        assert list(found.values) == VALUES[:3], "offsets and epochs lie outside of the checksum"


def test_the_first_voter_is_this_node(tmp_path: Path) -> None:
    directory_id = bytes(range(16))
    assert first_voters(str(tmp_path)) == QuorumVoters()
    write_first_voters(str(tmp_path), 7, directory_id, NOW_MS)
    quorum = first_voters(str(tmp_path))
    assert quorum.voter_ids() == {7}
    assert quorum.voters is not None
    [voter] = VotersRecord.decode(quorum.voters, 0).voters
    assert voter.voter_directory_id == directory_id
    feature = KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
    endpoints = [Endpoint(name="CONTROLLER", host="localhost", port=9093)]
    expected = Voter(
        voter_id=7,
        voter_directory_id=directory_id,
        endpoints=endpoints,
        k_raft_version_feature=feature,
    )
    assert quorum.voters == VotersRecord(version=0, voters=[expected]).encode(0)
    assert quorum.kraft_version == KRaftVersionRecord(version=0, k_raft_version=1).encode(0)
    assert snapshots_in(str(tmp_path)) == [], "it stands for no part of the log"
