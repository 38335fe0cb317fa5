"""Offsets and consumer groups of Penstock's client at Apache Kafka 0.8 and 0.9."""

from __future__ import annotations

import pytest

from client.old_offsets import check_automatic_commits, check_commits, check_no_groups, check_no_offsets, fill
from compat.peers import shared_kafka

pytestmark = [pytest.mark.compat]


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1"])
def test_offsets_and_groups(release: str) -> None:
    servers = shared_kafka(release)
    fill(servers, "old-offsets")
    if release == "0.8.0":
        check_no_offsets(servers, "old-offsets")
    else:
        check_commits(servers, "old-offsets", "g")
        check_automatic_commits(servers, "old-offsets", "h")
    if release < "0.9":
        check_no_groups(servers, "old-offsets", has_offsets=release != "0.8.0")
