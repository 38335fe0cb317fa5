"""What a share consumer hands out: acquired records only, with delivery counts, and decisions about the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.config import ShareConsumerConfig
from penstock.client.serializers import Deserializers
from penstock.client.share.acknowledgements import GAP, AcknowledgeType
from penstock.client.share.handing_out import HandingOut
from penstock.client.share.holdings import AcquiredPart, Holdings
from penstock.client.share.offset_map import Run
from penstock.client.share.readings import SHARE_COLUMN_NAMES
from penstock.errors import ConfigError, CorruptRecordError, DeserializationError, UnpackLimitError
from penstock.model import TopicPartition
from penstock.records.compression.codecs import Codec
from penstock.records.encode import encode_batch
from tests.records.making import pairs

TP = TopicPartition("t", 3)
ID = b"t" * 16
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def log_batch(first: int, count: int, codec: Codec = Codec.NONE) -> bytes:
    return bytes(encode_batch(pairs(first, count), base_offset=first, codec=codec))


class Bench:
    """Holdings, and what hands them out."""

    def __init__(
        self, read_value: Callable[[bytes], Any] | None = None, **options: Any
    ) -> None:
        self.now = 0.0
        options = {"group_id": "g", **options}
        config = ShareConsumerConfig.of(None, options, bootstrap_servers="localhost:1")
        self.holdings = Holdings(lambda: self.now, 10.0)
        deserialize = None if read_value is None else Deserializers[Any, Any](None, read_value)
        self.out = HandingOut[Any, Any](config, self.holdings, deserialize)

    def give(self, records: bytes, *acquired: Run, node: int = 1, deadline: float = 100.0) -> None:
        self.holdings.add(AcquiredPart(TP, ID, node, memoryview(records), acquired, deadline))

    def rows(self, limit: int = 100) -> list[tuple[int, int]]:
        return [(row.offset, row.delivery_count) for row in self.out.rows(limit)]

    def batch(self, batch_bytes: int = 1 << 20) -> list[tuple[int, int]] | None:
        batch = self.out.batch(SHARE_COLUMN_NAMES, batch_bytes)
        if batch is None:
            return None
        assert batch.schema.names == list(SHARE_COLUMN_NAMES)
        return list(zip(batch["offset"].to_pylist(), batch["deliveryCount"].to_pylist(), strict=True))

    def sent(self) -> list[Run]:
        return [run for each in self.holdings.decisions() for run in each.group.runs]
