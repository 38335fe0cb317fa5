"""Tests of the statements in docs/reference/seeds.md that the protocol code alone can confirm."""

from __future__ import annotations

import pytest

from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.compiler.wire_types import VARINT_TYPES
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import OffsetCommitResponse, OffsetFetchResponse
from penstock.protocol.releases import api_versions


def test_keys_of_commits_are_those_of_releases() -> None:
    assert (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH) == (8, 9)
    assert [API_TABLE[key].name for key in (6, 7)] == ["UpdateMetadata", "ControlledShutdown"]


def test_answers_about_offsets_begin_with_the_topics() -> None:
    assert OffsetCommitResponse().encode(0) == OffsetFetchResponse().encode(0) == b"\0\0\0\0"


def test_errors_have_the_meaning_that_brokers_gave_them() -> None:
    names = [ErrorCode(code).name for code in (2, 4, 5, 7, 9, 11, 21)]
    assert names == [
        "CORRUPT_MESSAGE", "INVALID_FETCH_SIZE", "LEADER_NOT_AVAILABLE", "REQUEST_TIMED_OUT",
        "REPLICA_NOT_AVAILABLE", "STALE_CONTROLLER_EPOCH", "INVALID_REQUIRED_ACKS",
    ]  # fmt: skip


@pytest.mark.parametrize(("edge", "size"), [(-65, 2), (-8193, 3), (-1048577, 4), (-134217729, 5)])
def test_edges_of_zigzag(edge: int, size: int) -> None:
    write = VARINT_TYPES["int32", "signed"].kind.write
    assert (len(write(edge)), len(write(edge + 1))) == (size, size - 1)
    assert len(VARINT_TYPES["int64", "signed"].kind.write(-(2**63))) == 10


def test_joining_in_version_1_begins_with_0_10_1() -> None:
    for number, highest in (("0.9.0", 0), ("0.10.0", 0), ("0.10.1", 1)):
        assert dict(api_versions(number))[ApiKey.JOIN_GROUP][1] == highest
