"""Tests of one share partition, step by step: its state before and after a write is stored."""

from __future__ import annotations

import pytest

from penstock.broker.sharing.acknowledgements import Acknowledged, AckType
from penstock.broker.sharing.settings import SharingSettings
from penstock.broker.sharing.share_partition import Acquired, FoundBatch, SharePartition
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode

SETTINGS = SharingSettings(lock_duration_ms=1000, delivery_count_limit=2)
ACCEPTED = [Acknowledged(0, 0, AckType.ACCEPT)]


def take(partition: SharePartition, now: float) -> list[Acquired]:
    return partition.acquire("m", partition.next_offset, [FoundBatch(0, 0)], SETTINGS, now, most=10)


def store(partition: SharePartition, error_code: int = 0) -> int:
    """Write the pending state with an error code; return the start offset in the write."""
    write = partition.next_write()
    assert write is not None
    partition.written(write, error_code)
    return write.start_offset


@pytest.mark.parametrize("error_code", [0, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("is_session", [True, False])
def test_the_start_moves_over_a_last_delivery_once_it_is_stored(error_code: int, is_session: bool) -> None:
    """The start offset passes a record at its delivery limit only after its state is stored.

    Until then a late acknowledgement is refused, and a new leader would deliver the record again.
    """
    partition = SharePartition(0)
    assert take(partition, 0.0) == [Acquired(0, 0, 1)]
    assert partition.expire(SETTINGS, 1.0)
    assert store(partition) == 0
    assert take(partition, 1.0) == [Acquired(0, 0, 2)]
    if is_session:
        assert partition.release("m", SETTINGS)
    else:
        assert partition.expire(SETTINGS, 2.0)
    assert partition.start_offset == 0
    with pytest.raises(KafkaError) as caught:
        partition.acknowledge("m", ACCEPTED, SETTINGS, 2.0)
    assert caught.value.code == ErrorCode.INVALID_RECORD_STATE
    assert store(partition, error_code) == 1
    assert partition.start_offset == 1
    assert partition.acknowledge("m", ACCEPTED, SETTINGS, 2.0) is None
    assert take(partition, 2.0) == []
