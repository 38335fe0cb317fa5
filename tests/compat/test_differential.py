"""The same requests to our broker and to Apache Kafka get the same answers, field by field.

What differs nevertheless stands, with a reason, in `docs/reference/differences.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import compat.group_scripts  # noqa: F401  adds to the scripts
from compat.peers import shared_kafka
from compat.scripts import SCRIPTS
from compat.transcript import Exchange, Mismatch, Talk, compare
from penstock import Broker
from penstock.protocol.api import API_TABLE

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

RELEASES = ["4.3.0", "3.9.1"]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "differences.md"


class Rule(NamedTuple):
    """A row of the document: where answers may differ. Patterns match whole names."""

    api: str
    versions: range
    path: str
    against: str
    reason: str

    def covers(self, mismatch: Mismatch, release: str) -> bool:
        return bool(
            re.fullmatch(self.api, mismatch.api)
            and mismatch.version in self.versions
            and re.fullmatch(self.path, mismatch.path)
            and release.startswith(self.against)
        )


@cache
def rules() -> list[Rule]:
    """The tables of the document: API, versions, field, release, reason. ``*`` stands for anything."""
    found = []
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            api, versions, path, against, reason = cells
            low, _, high = versions.partition("-")
            numbers = range(1000) if versions == "all" else range(int(low), int(high or low) + 1)
            for each in re.findall(r"`([^`]+)`", path):
                pattern = re.escape(each).replace(r"\*", ".*")
                name = api.strip("`").replace("*", ".*")
                found.append(Rule(name, numbers, pattern, "" if against == "all" else against, reason))
    return found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    with Broker(tmp_path_factory.mktemp("data"), config=settings) as broker:
        yield broker.bootstrap_servers


@cache
def offered(servers: str) -> dict[str, tuple[int, int]]:
    with Talk(servers, {}, 0, settle_s=0, prefix="") as talk:
        answer = talk.ask("ApiVersions", 0, {})
    names = {key: api.name for key, api in API_TABLE.items()}
    found = {names[e["api_key"]]: (e["min_version"], e["max_version"]) for e in answer["api_keys"]}
    if found["Fetch"][0] > 3:  # Kafka 4 names Produce 0 to 2 for the sake of librdkafka, and refuses them
        found["Produce"] = 3, found["Produce"][1]
    for api in ("OffsetCommit", "OffsetFetch"):  # 0 is about ZooKeeper, which these releases run without
        found[api] = max(found[api][0], 1), found[api][1]
    return found


def common(ours: str, theirs: str) -> dict[str, tuple[int, int]]:
    """Versions that both offer."""
    mine, other = offered(ours), offered(theirs)
    both = {
        api: (max(mine[api][0], other[api][0]), min(mine[api][1], other[api][1]))
        for api in mine
        if api in other
    }
    return {api: (low, high) for api, (low, high) in both.items() if low <= high}


def transcript(
    servers: str, ranges: dict[str, tuple[int, int]], script: str, against: str, seed: int, settle_s: float
) -> list[Exchange]:
    """What `servers` answer to a script. Names are those of this pair of runs: brokers are shared."""
    prefix = f"{script.replace('_', '')}{seed}-{against[0]}"
    with Talk(servers, ranges, seed, settle_s=settle_s, prefix=prefix) as talk:
        SCRIPTS[script](talk)
        return talk.exchanges


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("release", RELEASES)
def test_same_answers(ours: str, release: str, script: str) -> None:
    theirs = shared_kafka(release)
    ranges = common(ours, theirs)
    mine = transcript(ours, ranges, script, release, 1, 0)
    other = transcript(theirs, ranges, script, release, 1, 0.06)
    found = list(compare(mine, other))
    unexplained = [m for m in found if not any(rule.covers(m, release) for rule in rules())]
    report = "\n".join(map(str, unexplained[:60]))
    assert not unexplained, f"{len(unexplained)} of {len(mine)} differ:\n{report}"
