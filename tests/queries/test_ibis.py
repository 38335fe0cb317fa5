"""Tests of Ibis, which queries topics through DuckDB; its filters and columns limit what is fetched."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa
import pytest

from penstock import topic_dataset, write_topic
from penstock.queries.watching import Watch


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis's own call
def test_expressions_reach_the_topic(servers: str, new_topic: Callable[..., str]) -> None:
    import ibis  # takes long, and this is all that is asked of it

    topic = new_topic(1)
    write_topic(pa.table({"value": [f'{{"amount": {n % 90}}}' for n in range(900)]}), topic, servers)
    watch = Watch()
    connection = duckdb.connect()
    connection.register("orders", topic_dataset(topic, servers, value_format="json").watched(watch))
    orders = ibis.duckdb.from_connection(connection).table("orders")
    assert orders.filter(orders.offset < 10).count().to_pyarrow().as_py() == 10
    assert watch.records == 10
    assert orders.filter(orders.amount == 7).select("amount").to_pyarrow().num_rows == 10
