"""Polars data frames can be written as records, and scans of topics can be read as Polars frames."""

from __future__ import annotations

import pytest

from penstock import Broker, read_topic, scan_log, scan_topic, write_topic

ROWS = 100_000


@pytest.mark.compat
def test_polars_in_both_directions(tmp_path) -> None:
    import polars as pl

    keys = pl.Series([f"k{number % 7}" for number in range(ROWS)])
    frame = pl.DataFrame({"key": keys.cast(pl.Categorical), "value": [str(number) for number in range(ROWS)]})
    with Broker(data_dir=tmp_path, num_partitions=3) as broker:
        servers = broker.bootstrap_servers
        assert write_topic(frame, "readings", servers).rows == ROWS
        scan = scan_topic("readings", servers, columns=["key", "value"])
        back = pl.DataFrame(scan)
        assert back.schema == {"key": pl.Binary, "value": pl.Binary}
        decoded = back.select(pl.col("key").cast(pl.String), pl.col("value").cast(pl.String).cast(pl.Int64))
        counts = decoded.group_by("key").len().sort("key")["len"].to_list()
        assert counts == frame.group_by("key").len().sort(pl.col("key").cast(pl.String))["len"].to_list()
        assert sorted(decoded["value"].to_list()) == list(range(ROWS))
        assert write_topic(back, "copy", servers).rows == ROWS
        assert read_topic("copy", servers).num_rows == ROWS
        assert pl.from_arrow(read_topic("copy", servers, limit=10)).height == 10
        nothing = pl.DataFrame(scan_topic("copy", servers, limit=0))
        assert nothing.height == 0
        assert nothing.width == 8
    assert pl.DataFrame(scan_log(tmp_path, "copy")).height == ROWS
