from __future__ import annotations

import pytest

from penstock.errors import ConfigError
from penstock.spark.monitoring.names import query_name, source_name

SERVER = {"kafka.bootstrap.servers": "host:9092"}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"subscribe": "orders"}, "penstock[orders] on host:9092"),
        ({"subscribe": "orders,bills"}, "penstock[bills, orders] on host:9092"),
        ({"subscribepattern": "o.*"}, "penstock[/o.*/] on host:9092"),
        ({"assign": '{"orders": [1]}'}, "penstock[orders-1] on host:9092"),
        (
            {"subscribe": "a,b,c,d,e,f,g", "kafka.bootstrap.servers": "one:1, two:2"},
            "penstock[a, b, c, d, e, 2 more] on one:1 (and 1 more)",
        ),
    ],
)
def test_a_source_is_named_after_what_it_reads_and_where(options: dict[str, str], name: str) -> None:
    assert source_name({**SERVER, **options}) == name


def test_a_frame_of_spark_connect_needs_a_name_of_the_users() -> None:
    with pytest.raises(ConfigError, match="Spark Connect"):
        query_name(object())  # type: ignore[arg-type]
