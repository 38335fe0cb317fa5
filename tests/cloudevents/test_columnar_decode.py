"""A whole batch must say what the functions for one event say of each row."""

from __future__ import annotations

import random

import pytest

from cloudevents_cases import batch_of, outcomes, random_parts
from penstock.cloudevents.columnar import EVENT_SCHEMA, decode_events
from penstock.cloudevents.timestamps import format_timestamp


def decoded(batch, **options):
    """The rows of a decoded batch, without what is null."""
    out = decode_events(batch, columns=EVENT_SCHEMA.names, **options)
    out.validate(full=True)
    for row in out.select(EVENT_SCHEMA.names).to_pylist():
        if row["error"] is None:
            row["written"] = row.pop("time_text")
            if row["written"] is None and row["time"] is not None:
                row["written"] = format_timestamp("time", row["time"])
            yield row
        else:
            yield row


def check(records, **options):
    pairs = zip(decoded(batch_of(records), **options), outcomes(records, **options), records, strict=True)
    for got, expected, record in pairs:
        known = got.keys() | expected.keys()
        assert {name: got.get(name) for name in known} == {name: expected.get(name) for name in known}, record


@pytest.mark.parametrize("profile", ["strict", "lenient"])
@pytest.mark.parametrize("seed", range(8))
def test_random_records(seed, profile):
    rng = random.Random(seed)
    check([random_parts(rng) for _ in range(2000)], profile=profile)


@pytest.mark.parametrize("option", ["assume_structured", "partitionkey_from_key"])
def test_random_records_with_options(option):
    rng = random.Random(option)
    check([random_parts(rng) for _ in range(1000)], **{option: True})
