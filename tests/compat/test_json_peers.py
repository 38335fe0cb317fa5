"""Our JSON form and bytes against Apache Kafka's own JSON converters, every message and version."""

from __future__ import annotations

import json

import pytest

from compat import peers
from explorer.test_lines import decoded, encoded
from penstock.protocol.json_form import to_json
from protocol import catalogue
from protocol.samples import sample
from protocol.test_json_form import can_be_written, without_unknown_tags

pytestmark = pytest.mark.compat

RENAMED = {
    ("TxnOffsetCommitRequest", 3), ("TxnOffsetCommitRequest", 4), ("TxnOffsetCommitRequest", 5),
    ("StreamsGroupHeartbeatResponse", 0),
}  # fmt: skip
"""Fields that got another name after 4.3; definitions are those of trunk."""

NEWER = {"StreamsGroupMetadataValue"}
"""Messages that got tagged fields after 4.3."""

NULL_TAGGED = {"ConsumerGroupMemberMetadataValue"}
"""Kafka writes a tagged struct that is null in a way it cannot read itself."""


def lines() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name in catalogue.NAMES:
        for message_class, definition, version in catalogue.versions(name):
            if (name, version) in RENAMED or name in NEWER | NULL_TAGGED:
                continue
            for message in (
                message_class(),
                *(sample(message_class, definition, version, seed) for seed in range(3)),
            ):
                without_unknown_tags(message)
                if can_be_written(message, version):
                    body = {"name": name, "version": version}
                    found.append({**body, "hex": message.encode(version).hex()})
                    found.append({**body, "json": to_json(message, version)})
    return found


def without_records(form: object) -> object:
    """Kafka's converters write records as an empty string, whatever they hold."""
    if isinstance(form, dict):
        return {
            name: "" if name in ("records", "unalignedRecords") and each else without_records(each)
            for name, each in form.items()
        }
    return [without_records(each) for each in form] if isinstance(form, list) else form


def test_kafka_4_3_writes_and_reads_the_same() -> None:
    asked = lines()
    answer = peers.java(
        peers.maven_classpath("kafka-4.3.0"),
        peers.HERE / "java" / "json_forms" / "JsonForms.java",
        stdin="".join(json.dumps(line) + "\n" for line in asked),
        timeout_s=300,
        check=True,
    )
    told = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(told) == len(asked)
    compared = 0
    for line, theirs in zip(asked, told, strict=True):
        if "absent" in theirs:
            continue
        compared += 1
        if "hex" in line:
            ours = decoded(**line)
            assert without_records(ours.get("json")) == theirs.get("json"), (line, ours, theirs.get("error"))
        else:
            ours = encoded(**line)
            assert ours.get("hex") == theirs.get("hex"), (line, ours, theirs.get("error"))
    assert compared > 4000
