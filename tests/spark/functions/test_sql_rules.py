"""Tests of the syntax of CloudEvents attributes with a table of cases, as expressions of Spark SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cloudevents_cases import batch_of
from cloudevents_grammar import CASES, EXPECTED, RECORDS
from penstock.spark import from_cloudevents


def test_every_case_is_judged_by_spark_sql(spark: Any) -> None:
    rows = pa.array(range(len(RECORDS)), pa.int64())
    table = pa.Table.from_batches([batch_of(RECORDS)]).add_column(0, "row", rows)
    frame = from_cloudevents(spark.createDataFrame(table), columns=("rule",), modes="binary")
    assert "Python" not in frame._jdf.queryExecution().executedPlan().toString()
    rules = [row["rule"] for row in frame.orderBy("row").toArrow().to_pylist()]
    assert [(name, text, rule) for (name, text, _), rule in zip(CASES, rules, strict=True)] == EXPECTED
