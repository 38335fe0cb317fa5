"""Every message in every version has the bytes that Apache Kafka's own serializers write and read.

Kafka's generated classes decode the bytes that Penstock wrote and encode them again. They convert the
bytes to Kafka's JSON form and back. They also encode messages without any field set, so that default
values are compared.
"""

from __future__ import annotations

from functools import cache

import pytest

from compat.peers import HERE, java, maven_classpath
from penstock.errors import EncodeError
from penstock.protocol.message_index import HOMES
from protocol.catalogue import message, versions
from protocol.samples import KINDS, extreme, sample

pytestmark = pytest.mark.compat

RELEASES = ("4.3.0", "3.9.1")
PROGRAM = HERE / "java" / "messages" / "Messages.java"
SEEDS = range(4)

RENAMED = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
EARLY = {
    "ShareGroupPartitionMetadataKey",
    "ShareGroupPartitionMetadataValue",
    "ShareGroupMetadataValue",
    "ReadShareGroupStateSummaryResponse",
}
"""Early-access share group messages of 3.9 that 4.0 removed or changed incompatibly."""


def ask(release: str, lines: list[str]) -> list[str]:
    """Return what the Kafka classes of a release answer to command lines, which `Messages.java` describes."""
    classpath = maven_classpath(f"kafka-{release}")
    answers = java(classpath, PROGRAM, "answer", stdin="\n".join(lines) + "\n", timeout_s=300, check=True)
    found = answers.stdout.split("\n")[:-1]
    assert len(found) == len(lines)
    return found


@cache
def theirs(release: str) -> dict[str, tuple[str, int, int]]:
    """Return the messages of a Kafka release, keyed by our name: Kafka's name, lowest and highest version."""
    rows = java(maven_classpath(f"kafka-{release}"), PROGRAM, check=True).stdout.splitlines()
    found = {}
    for name, low, high in (row.split() for row in rows):
        if release < "4" and name in EARLY:
            continue
        found[RENAMED.get(name, name)] = (name, int(low), int(high))
    return found


def both(release: str, but: str = ""):
    """Yield Kafka's name and version, and our class, definition and version, of each message of a release.

    Versions that the release `but` also has are left out, if one is named.
    """
    elsewhere = theirs(but) if but else {}
    for ours, (name, low, high) in theirs(release).items():
        shift = low if is_typed_key(name, low) else 0
        left_out = ours_of(*elsewhere[ours]) if ours in elsewhere else range(0)
        for message_class, definition, version in versions(ours):
            if low <= version + shift <= high and version not in left_out:
                yield name, version + shift, message_class, definition, version


def ours_of(name: str, low: int, high: int) -> range:
    """Return the range of our version numbers that corresponds to a message's versions in Kafka."""
    shift = low if is_typed_key(name, low) else 0
    return range(low - shift, high - shift + 1)


def is_typed_key(name: str, low: int) -> bool:
    """Return True if the version number of a record key is the record's type, as before Kafka 4.0."""
    return name.endswith("Key") and low > 0


@pytest.mark.parametrize("release", RELEASES)
def test_no_message_or_version_is_missing(release):
    missing = []
    for ours, (name, low, high) in theirs(release).items():
        if ours not in HOMES:
            missing.append(name)
        elif name == "OffsetCommitKey" or is_typed_key(name, low):
            assert message(ours)[0].VERSIONS == (0, 0)  # its types 0 and 1 have one layout
        else:
            known = message(ours)[0].VERSIONS
            missing += [
                f"{name} v{each}" for each in range(low, high + 1) if not known[0] <= each <= known[1]
            ]
    assert missing == []


@pytest.mark.parametrize(
    ("release", "but"), [("4.3.0", ""), ("3.9.1", "4.3.0"), pytest.param("3.9.1", "", marks=pytest.mark.soak)]
)
def test_kafka_reads_what_we_write_and_writes_the_same(release, but):
    asked, lines = [], []
    for name, number, message_class, definition, version in both(release, but):
        made = [sample(message_class, definition, version, seed) for seed in SEEDS]
        made += [extreme(message_class, definition, version, kind) for kind in KINDS]
        for place, one in enumerate(made):
            data = one.encode(version).hex()
            asked.append((f"{name} v{number} #{place}", data))
            lines.append(f"read {name} {number} {data}")
    wrong = []
    in_json = 0
    for (title, data), answer in zip(asked, ask(release, lines), strict=True):
        written, _, rest = answer.partition("\t")
        if written != data:
            wrong.append((title, data[:200], written[:200]))
        from_json = rest.partition("\t")[0]
        in_json += from_json == data
    assert wrong == []
    assert in_json > len(asked) // 2  # not: unknown tags and records, which Kafka's JSON has no place for


@pytest.mark.parametrize("release", RELEASES)
def test_defaults_are_kafkas(release):
    found, lines = [], []
    for name, number, message_class, _, version in both(release):
        found.append((name, message_class, version))
        lines.append(f"plain {name} {number}")
    wrong = []
    for (name, message_class, version), answer in zip(found, ask(release, lines), strict=True):
        written = answer.partition("\t")[0]
        try:
            ours = message_class().encode(version).hex()
        except EncodeError as error:
            ours = f"! {error}"
        if written != ours and not (written[0] == ours[0] == "!"):
            wrong.append((name, version, ours, written))
    assert wrong == []
