"""Tests of printing definitions for people, in the grammar of Kafka's protocol guide and as table rows."""

from __future__ import annotations

from for_each import for_each
from penstock.protocol.inspect.printer import grammar, rows
from penstock.protocol.schema.loader import load_definition
from penstock.protocol.schema.parser import parse_definition
from protocol import catalogue


def test_the_guides_manner() -> None:
    assert list(grammar(load_definition("MetadataRequest"), 12)) == [
        "Metadata Request (Version: 12) => [topics] allow_auto_topic_creation "
        "include_topic_authorized_operations _tagged_fields",
        "  topics => topic_id name _tagged_fields (nullable)",
        "    topic_id => UUID",
        "    name => COMPACT_NULLABLE_STRING",
        "  allow_auto_topic_creation => BOOLEAN",
        "  include_topic_authorized_operations => BOOLEAN",
    ]
    assert list(grammar(load_definition("MetadataRequest"), 0)) == [
        "Metadata Request (Version: 0) => [topics]",
        "  topics => name",
        "    name => STRING",
    ]


def test_tagged_fields_at_the_end() -> None:
    lines = list(grammar(load_definition("FetchRequest"), 12))
    assert lines[-2:] == [
        "  _tagged_fields => cluster_id<tag: 0>",
        "    cluster_id => COMPACT_NULLABLE_STRING",
    ]


def test_arrays_of_numbers_and_empty_messages() -> None:
    assert "      isr_nodes => INT32" in grammar(load_definition("MetadataResponse"), 0)
    assert list(grammar(load_definition("ListGroupsRequest"), 0)) == ["ListGroups Request (Version: 0) =>"]


def test_packed_integers() -> None:
    fields = [
        {"name": "A", "versions": "0+", "type": {"0": "int32", "1+": "varint32"}},
        {"name": "B", "versions": "0+", "type": "[]unsigned_varint64"},
    ]
    source = {
        "name": "P",
        "type": "data",
        "validVersions": "0-1",
        "flexibleVersions": "none",
        "fields": fields,
    }
    definition = parse_definition(source, "P")
    assert list(grammar(definition, 1)) == [
        "P (Version: 1) => a [b]",
        "  a => VARINT32",
        "  b => UNSIGNED_VARINT64",
    ]
    assert [(row.field, row.type) for row in rows(definition)] == [
        ("a", "0: int32, 1+: varint32"),
        ("b", "[]unsigned_varint64"),
    ]
    assert [row.type for row in rows(definition, 0)] == ["int32", "[]unsigned_varint64"]


def test_rows_of_one_version_or_all() -> None:
    everything = list(rows(load_definition("FetchRequest")))
    assert everything[0] == ("clusterId", "string", "12+", "12+", "null", "tag 0 in 12+, ignorable")
    assert "  partitions" in [row.field for row in everything]
    assert "clusterId" not in [row.field for row in rows(load_definition("FetchRequest"), 4)]


@for_each(catalogue.NAMES)
def test_every_message_and_version_has_a_grammar(name: str) -> None:
    definition = load_definition(name)
    for version in definition.valid.up_to(definition.valid.highest):
        assert all(line == line.rstrip() and line for line in grammar(definition, version))
    assert all(len(row) == 6 for row in rows(definition))
