"""Tests that the error messages in docs/how-to/spark.md, "What is refused", are those that users get."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.pandas import functions
from pyspark.sql.types import StringType, StructField, StructType

from penstock.errors import PenstockError
from penstock.spark import PenstockDataSource, requirements
from penstock.spark.functions import from_cloudevents, to_cloudevents
from penstock.spark.runtime import releases

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark.md"
SINK = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
ROWS = StructType([StructField("value", StringType())])


def table() -> dict[tuple[str, str], str]:
    """Return a dict from a Spark release and a case to the message in the page's table."""
    chapter = PAGE.read_text("utf-8").partition("## What is refused\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in chapter.splitlines() if line.startswith("| ")]
    return {(release, what): sentence.strip("` |") for release, what, sentence in rows[1:]}


def too_old() -> None:
    raise requirements.unusable(ImportError("cannot import name 'DataSource'"))


def decodes_structured() -> None:
    from_cloudevents._udf("strict", False, (), {})


def encodes_structured() -> None:
    to_cloudevents._encoder({})


def overwrites() -> None:
    PenstockDataSource(SINK).writer(ROWS, True)


def numbers_a_stream() -> None:
    PenstockDataSource({**SINK, "exactlyOnce": "true", "txnAppId": "a", "txnVersion": "1"}).streamWriter(
        ROWS, False
    )


REFUSED: dict[tuple[str, str], tuple[str | None, Callable[[], None]]] = {
    ("before 4.0", "everything in `penstock.spark`"): ("3.5.1", too_old),
    ("4.0", '`from_cloudevents` but with `modes="binary"`'): ("4.0.1", decodes_structured),
    ("4.0", '`to_cloudevents(mode="structured")`'): ("4.0.1", encodes_structured),
    ("all", '`.mode("overwrite")`'): (None, overwrites),
    ("all", "`txnAppId` and `txnVersion` in a stream"): (None, numbers_a_stream),
}


def test_the_table_has_all_that_is_tried_here() -> None:
    assert set(table()) == set(REFUSED)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: re.sub(r"\W+", "-", " ".join(row)))
def test_a_refusal_reads_as_on_the_page(row: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    version, attempt = REFUSED[row]
    if version is not None:
        for module in (requirements, releases):
            monkeypatch.setattr(module, "pyspark_version", lambda: version)
        monkeypatch.delattr(functions, "arrow_udf")
    with pytest.raises(PenstockError) as caught:
        attempt()
    assert str(caught.value).startswith(table()[row])
