"""Penstock's broker and Apache Kafka give the same answers to the same requests, field by field.

Every difference that is allowed has a row, with a reason, in `docs/reference/differences.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

import compat.config_scripts
import compat.group_scripts
import compat.mixed_group_scripts
import compat.quota_scripts
import compat.share_scripts
import compat.streams_scripts
import compat.transaction_scripts  # noqa: F401  they add to the scripts
from compat.peers import shared_kafka, stop_shared
from compat.scripts import SCRIPTS
from compat.transcript import Exchange, Mismatch, Talk, compare
from penstock import Broker
from penstock.protocol.api import API_TABLE

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

AS_VERSION = {"4.4.0": None, "4.3.0": "4.3", "3.9.1": "3.9"}
NEWEST, *OLDER = AS_VERSION
RELEASES = (NEWEST, *(pytest.param(each, marks=pytest.mark.again) for each in OLDER))
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "differences.md"


class Rule(NamedTuple):
    """A row of differences.md: an answer's field that may differ, and its values.

    Patterns match whole names and values.
    """

    api: str
    versions: range
    path: str
    ours: str
    theirs: str
    against: str

    def covers(self, mismatch: Mismatch, release: str) -> bool:
        return bool(
            re.fullmatch(self.api, mismatch.api)
            and mismatch.version in self.versions
            and re.fullmatch(self.path, mismatch.path)
            and re.fullmatch(self.ours, str(mismatch.ours), re.DOTALL)
            and re.fullmatch(self.theirs, str(mismatch.theirs), re.DOTALL)
            and release.startswith(self.against)
        )


def patterns(cell: str) -> list[str]:
    """Return a regular expression for each text in backticks in a table cell. ``*`` matches anything."""
    return [re.escape(each).replace(r"\*", ".*") for each in re.findall(r"`([^`]+)`", cell)]


@cache
def rules() -> list[Rule]:
    """Return all rows of the tables in differences.md."""
    found = []
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("| `"):
            apis, versions, paths, ours, theirs, release, _ = (c.strip() for c in line.strip("|").split("|"))
            low, _, high = versions.partition("-")
            numbers = range(1000) if versions == "all" else range(int(low), int(high or low) + 1)
            against = "" if release == "all" else release
            for api, path, mine, other in product(*map(patterns, (apis, paths, ours, theirs))):
                found.append(Rule(api, numbers, path, mine, other, against))
    return found


def unexplained(found: Iterable[Mismatch], release: str) -> list[Mismatch]:
    """Return the differences from a Kafka release that no row of differences.md allows."""
    return [each for each in found if not any(rule.covers(each, release) for rule in rules())]


def shown(differences: list[Mismatch], answers: int) -> str:
    """Return the text of a failure report: the differences found among `answers` answers."""
    rows = "\n".join(map(str, differences[:60]))
    return f"{len(differences)} fields of {answers} answers differ:\n{rows}\n"


@pytest.fixture(scope="module", params=RELEASES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, str]]:
    """Yield a Kafka release, a Penstock broker that emulates the release, and a real broker of it."""
    release = request.param
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
    settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = "200"
    profile = AS_VERSION[release]
    stop_shared()  # what other tests have left in a shared broker would be in its answers
    with Broker(tmp_path_factory.mktemp("data"), config=settings, as_version=profile) as broker:
        yield release, broker.bootstrap_servers, shared_kafka(release)


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
    """Return the range of versions that both brokers offer, for each API."""
    mine, other = offered(ours), offered(theirs)
    both = {
        api: (max(mine[api][0], other[api][0]), min(mine[api][1], other[api][1]))
        for api in mine
        if api in other
    }
    return {api: (low, high) for api, (low, high) in both.items() if low <= high}


def transcript(
    servers: str, ranges: dict[str, tuple[int, int]], script: str, attempt: int, settle_s: float
) -> list[Exchange]:
    prefix, patience_s = f"{script.replace('_', '')}{attempt}", (4, 12, 36)[attempt - 1]
    with Talk(servers, ranges, seed=1, settle_s=settle_s, prefix=prefix, patience_s=patience_s) as talk:
        SCRIPTS[script](talk)
        return talk.exchanges


ATTEMPTS = 3
"""The number of attempts in which a difference must appear before it counts.

Session timeouts use the machine's clock, so a pause of the machine can expire a member at one broker only.
A real difference appears in every attempt; later attempts wait longer.
"""


@pytest.mark.parametrize("script", SCRIPTS)
def test_same_answers(pair: tuple[str, str, str], script: str) -> None:
    release, ours, theirs = pair
    ranges = common(ours, theirs)
    report = ""
    for attempt in range(1, ATTEMPTS + 1):
        settle_s = (0.06, 0.2, 0.6)[attempt - 1]
        with ThreadPoolExecutor(1) as beside:  # most of a script is waiting
            asked = beside.submit(transcript, theirs, ranges, script, attempt, settle_s)
            mine = transcript(ours, ranges, script, attempt, 0)
            other = asked.result()
        try:
            differences = unexplained(compare(mine, other), release)
        except AssertionError as error:  # an answer came too late in one of them: the rest has no counterpart
            report += f"attempt {attempt}: {error}\n"
            continue
        if not differences:
            return
        report += f"attempt {attempt}: {shown(differences, len(mine))}"
    pytest.fail(report)
