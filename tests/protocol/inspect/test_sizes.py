"""Tests of the table of message sizes per integer encoding, compared with definitions of KIP-625."""

from __future__ import annotations

import pytest

from penstock.protocol.codec import codec_for
from penstock.protocol.inspect.sizes import columns, measure
from penstock.protocol.messages import FetchResponse, MetadataResponse
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, LeaderIdAndEpoch, PartitionData
from penstock.protocol.schema.definition import FIXED, SIGNED, UNSIGNED
from protocol.test_packed_integers import (
    ALL,
    PACKED_VERSION,
    PARTITION,
    e1,
    e2,
    e2_worst,
    e3,
    metadata_response,
)

EXAMPLES = [
    (e1, UNSIGNED, ALL, 3216, 1170),
    (e2, UNSIGNED, ALL, 3451, 1236),
    (e2, UNSIGNED, PARTITION, 3451, 1251),
    (e2, SIGNED, PARTITION, 3451, 1287),
    (e2, SIGNED, ALL, 3451, 1274),
    (e2_worst, SIGNED, PARTITION, 3451, 4251),
    (e2_worst, SIGNED, ALL, 3451, 4252),
    (e3, UNSIGNED, ALL, 3216, 1301),
    (e3, UNSIGNED, PARTITION, 3216, 1316),
]


@pytest.mark.parametrize(("make", "encoding", "only", "fixed", "packed"), EXAMPLES)
def test_the_examples_of_the_proposal(make, encoding: str, only: str, fixed: int, packed: int) -> None:
    sizes = measure(make(MetadataResponse), 9)
    assert sizes.bytes_now == sizes.total(FIXED) == fixed
    inside = "topics.partitions." if only else ""
    assert sizes.total(lambda field: encoding if field.path.startswith(inside) else FIXED) == packed
    # And that is what a definition that says so takes.
    packing = metadata_response(encoding, only=only)
    assert len(codec_for(packing, PACKED_VERSION).encode(make(packing))) == packed


@pytest.mark.parametrize("encoding", [SIGNED, UNSIGNED])
@pytest.mark.parametrize("make", [e1, e2, e2_worst, e3])
def test_a_packed_message_costs_what_it_says(make, encoding: str) -> None:
    packing = metadata_response(encoding)
    fixed, packed = measure(make(packing), 9), measure(make(packing), PACKED_VERSION)
    assert packed.bytes_now == packed.total(encoding) == fixed.total(encoding)
    assert packed.other_bytes == fixed.other_bytes
    assert packed.total(FIXED) == fixed.bytes_now
    assert packed.best_bytes <= min(packed.total(each) for each in (FIXED, SIGNED, UNSIGNED))


def test_the_two_laws_of_the_arithmetic() -> None:
    """The packed encoding saves at most 3 bytes per int32 and 1 per int16.

    In the worst case it costs one more byte per field.
    """
    sizes = measure(e1(MetadataResponse), 9)
    wide = sum(field.values for field in sizes.fields if field.type == "int32")
    narrow = sum(field.values for field in sizes.fields if field.type == "int16")
    extra = sum(field.unsigned - field.values for field in sizes.fields)
    assert (wide, narrow) == (649, 101)
    assert sizes.total(FIXED) - sizes.total(UNSIGNED) == 3 * wide + narrow - extra
    assert sizes.other_bytes + 5 * wide + 3 * narrow == 3966


def test_tagged_and_absent_fields_count_where_they_are_written() -> None:
    def fetched(leader: LeaderIdAndEpoch | None) -> FetchResponse:
        return FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(current_leader=leader)])]
        )

    plain = {field.path for field in measure(fetched(None), 12).fields}
    led = {field.path: field for field in measure(fetched(LeaderIdAndEpoch(leader_id=200)), 12).fields}
    assert led.keys() - plain == {
        "responses.partitions.currentLeader.leaderId",
        "responses.partitions.currentLeader.leaderEpoch",
    }
    leader = led["responses.partitions.currentLeader.leaderId"]
    assert (leader.fixed, leader.zigzag, leader.unsigned, leader.best) == (4, 2, 2, SIGNED)
    epoch = led["responses.partitions.currentLeader.leaderEpoch"]
    assert (epoch.fixed, epoch.zigzag, epoch.unsigned) == (4, 1, 5)
    assert "sessionId" not in {field.path for field in measure(FetchResponse(), 6).fields}


def test_the_columns_add_up() -> None:
    table = list(columns(measure(e1(MetadataResponse), 9)))
    for column in (3, 4, 5):
        assert sum(int(row[column]) for row in table[1:-1]) == int(table[-1][column])
    assert table[-1][3:] == ("3216", "1208", "1170", "1170")
