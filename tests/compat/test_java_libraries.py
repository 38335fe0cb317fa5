"""The Java client libraries: releases from 2017 on, and every Admin call of the newest release.

Java programs make the calls as an application would, and print a line of text for each outcome.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from compat.peers import HERE, java, maven_classpath
from compat.places import ONE, THREE_AND_AGAIN_ONE, made

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5", "num.partitions": "3", "log.retention.ms": "-1"}
"""Broker settings without time-based retention: the records have timestamps of 2020 and would be deleted."""
RELEASES = {
    "0.10.2.2": ("none gzip snappy lz4", "Range RoundRobin"),
    "1.1.1": ("none gzip snappy lz4", "Range RoundRobin Sticky"),
    "2.4.1": ("none gzip snappy lz4 zstd", "Range RoundRobin Sticky CooperativeSticky"),
    "3.0.2": ("none gzip snappy lz4 zstd", "Range RoundRobin Sticky CooperativeSticky"),
}
"""A dict from a client release to the codecs and assignors that it has."""
EACH = 200


def program(classpath: str, path: str, *args: str) -> dict[str, str]:
    """Run one of the Java test programs.

    Returns a dict from the first field of each output line to its second field.
    """
    done = java(maven_classpath(classpath), HERE / "java" / path, *args, timeout_s=300, check=True)
    return dict(line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)


def expected(version: str, brokers: int) -> dict[str, str]:
    codecs, assignors = (words.split() for words in RELEASES[version])
    total = EACH * len(codecs)
    in_first, in_last = (total + 2) // 3, total // 3
    lines = {
        "version": version,
        "produced": f"{total} [{', '.join(codecs)}]",
        "ends": f"{total}",
        "read": f"{total}",
        "offsetsForTimes": "[101@303, 100@301, 100@302]",
        "after seek": f"301 to {total - 1}, position {in_first}",
        "at the end": f"{in_last} 0",
    }
    for name in assignors:
        lines[f"{name}Assignor"] = f"{total} read, {total} committed, failures null null"
    if version >= "1":
        lines |= {"topics": "true 2", "cluster": str(brokers), "config": "delete", "transactions": "begun"}
        lines["administered"] = "true" if version >= "2" else "false"
    if version >= "2":
        lines["group"] = "Empty 3"
    return lines


@pytest.mark.parametrize("place", THREE_AND_AGAIN_ONE)
def test_old_clients(place: str) -> None:
    """Java clients use all codecs, headers, idempotence, seeks, timestamps, groups, commits, and Admin."""
    with made(place, config=SETTINGS) as broker, ThreadPoolExecutor(2) as pool:
        servers = broker.bootstrap_servers

        def run(version: str) -> dict[str, str]:
            return program(f"clients-{version}", "clients/OldClients.java", servers, f"of-{version}")

        assert dict(zip(RELEASES, pool.map(run, RELEASES), strict=True)) == {
            version: expected(version, 1 if place == ONE else 3) for version in RELEASES
        }
