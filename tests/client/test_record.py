"""Tests of the record class of all readers: a tuple that also decodes CloudEvents."""

from __future__ import annotations

import pickle

import pytest

import penstock
from penstock import model
from penstock.cloudevents import NotAnEvent
from penstock.model import ShareRecord, TimestampType
from penstock.records import rows
from penstock.records.batch import encode_batch
from penstock.records.legacy import encode_message_set

FIELDS = ("topic", 3, 7, 1_700_000_000_000, TimestampType.CREATE_TIME, b"key", b"value", ())


def test_a_record_is_the_tuple_of_its_fields():
    record = penstock.Record(*FIELDS)
    assert record == FIELDS
    assert hash(record) == hash(FIELDS)
    assert not hasattr(record, "__dict__")


def test_records_are_copied_and_pickled_as_they_are():
    record = penstock.Record(*FIELDS)
    assert type(record._replace(offset=8)) is penstock.Record
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(record, protocol))
        assert again == record
        assert type(again) is penstock.Record


def test_there_is_one_class_of_records_and_it_reads_events():
    assert penstock.Record is model.Record
    assert isinstance(penstock.Record(*FIELDS).event, NotAnEvent)


@pytest.mark.parametrize("count", [1, 10_000])  # read by Python, and by kernels where they are installed
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_rows_are_of_the_class_that_was_asked_for(count, magic):
    if magic == 2:
        data = encode_batch([(b"key", b"value", (), 5)] * count)
    else:
        data = encode_message_set([(b"key", b"value", 5)] * count, magic)
    pieces = list(rows.iter_rows(data, "t", 0, record_class=ShareRecord))
    found = [record for piece, _ in pieces for record in piece]
    assert len(found) == count
    assert {type(record) for record in found} == {ShareRecord}
