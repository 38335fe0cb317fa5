"""Penstock's JSON form and bytes equal those of Apache Kafka's JSON converters, for every message version."""

from __future__ import annotations

import json

import pytest

from compat import peers
from explorer.test_lines import decoded, encoded
from penstock.protocol.inspect.json_form import to_json
from protocol import catalogue
from protocol.inspect.test_json_form import can_be_written, without_unknown_tags
from protocol.samples import sample

pytestmark = pytest.mark.compat

CHANGED = {
    "4.3.0": {
        # Fields got other names later.
        "TxnOffsetCommitRequest": {3, 4, 5}, "StreamsGroupHeartbeatResponse": {0},
        # Tagged fields came later.
        "StreamsGroupMetadataValue": {0},
    },
    "3.9.1": {
        # Fields got other names later.
        "TxnOffsetCommitRequest": {3, 4}, "VoteRequest": {0, 1},
        # Tagged fields came later.
        "ConsumerGroupCurrentMemberAssignmentValue": {0}, "ConsumerGroupMetadataValue": {0},
        "ConsumerGroupTargetAssignmentMetadataValue": {0}, "OffsetCommitValue": {4},
        "RemoteLogSegmentMetadataRecord": {0}, "RemoteLogSegmentMetadataSnapshotRecord": {0},
        "ShareGroupMetadataValue": {0}, "TransactionLogValue": {1},
        # An early look at what was released in another form.
        "ReadShareGroupStateSummaryResponse": {0},
    },
}  # fmt: skip
"""Message versions in which a Kafka release differs from our definitions, which are those of trunk."""


def lines(release: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name in catalogue.NAMES:
        for message_class, definition, version in catalogue.versions(name):
            if version in CHANGED[release].get(name, ()):
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
    """Replace record data with an empty string, as Kafka's JSON converters do."""
    if isinstance(form, dict):
        return {
            name: "" if name in ("records", "unalignedRecords") and each else without_records(each)
            for name, each in form.items()
        }
    return [without_records(each) for each in form] if isinstance(form, list) else form


@pytest.mark.parametrize("release", ["4.3.0", pytest.param("3.9.1", marks=pytest.mark.again)])
def test_kafka_writes_and_reads_the_same(release: str) -> None:
    asked = lines(release)
    answer = peers.java(
        peers.maven_classpath(f"kafka-{release}"),
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
