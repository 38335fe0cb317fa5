"""Tests of how a producer distributes the rows of a table without keys over partitions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.config import ProducerConfig
from penstock.client.produce.columns import ColumnEncoder, record_batches


@pytest.mark.parametrize("value_bytes", [10, 100, 1_000, 5_000])
@pytest.mark.parametrize("batch_bytes", [100_000, 1_000_000])
def test_rows_without_keys_fill_whole_batches(value_bytes: int, batch_bytes: int) -> None:
    config = {"bootstrap_servers": "unused:1", "batch.size": batch_bytes}
    encoder = ColumnEncoder(ProducerConfig.parse(config, {}), lambda: 0.5)
    rows = 20_000_000 // (value_bytes + 30)
    table = pa.table({"value": pa.array([b"x" * value_bytes] * rows, pa.binary())})
    batches = [
        batch
        for part in record_batches(table, {})
        for batch in encoder.encode(part, 4, [0, 1, 2, 3], 1_700_000_000_000)
    ]
    assert sum(batch.record_count for batch in batches) == rows
    whole = sum(len(batch.data) for batch in batches) / batch_bytes
    # A last batch of each partition for each of at most three chunks may be smaller.
    assert len(batches) <= 1.12 * whole + 4
