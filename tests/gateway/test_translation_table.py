"""Tests that each version that Kafka 4 dropped has a translation, or a text that explains the refusal."""

from __future__ import annotations

from typing import Any

import pytest

from for_each import for_each
from gateway.old_client import Ranges
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation import NotForwarded, offered, spoken, translate
from penstock.gateway.translation.errors import highest_code, older_code
from penstock.gateway.translation.table import REFUSALS, RULES
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.releases import LAST_ZOOKEEPER, RELEASES
from penstock.protocol.schema.loader import load_definition
from protocol.samples import sample

CLUSTERS = ("4.0", "4.1", "4.2", "4.3", "4.4")


def taken(release: str) -> dict[int, tuple[int, int]]:
    """Return the version ranges that brokers of a release accept, including those not advertised."""
    return {
        key: (api.lowest, api.highest)
        for key, api in RELEASES[release].apis.items()
        if api.where not in ("zookeeper", "controller")
    }


def dropped(cluster: str) -> list[tuple[int, int]]:
    """Return each (API key, version) that brokers of 0.8.0 to 3.9 accepted and `cluster` does not."""
    there = RELEASES[cluster].apis
    old = {
        (key, version)
        for release in RELEASES.values()
        if release.numbers <= LAST_ZOOKEEPER
        for key, api in release.apis.items()
        for version in range(api.lowest, api.highest + 1)
    }
    return sorted(
        (key, version)
        for key, version in old
        if key not in there or not there[key].lowest <= version <= there[key].highest
    )


def refused_in_words(key: int, version: int) -> bool:
    return any(each.api_key == key and each.versions[0] <= version <= each.versions[1] for each in REFUSALS)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_what_4_dropped_is_translated_or_refused_by_name(cluster: str) -> None:
    upstream = taken(cluster)
    found = dropped(cluster)
    assert (ApiKey.PRODUCE, 0) in found
    assert (ApiKey.LEADER_AND_ISR, 7) in found
    unexplained = []
    for key, version in found:
        low, high = offered(upstream).get(key, (0, -1))
        if (low <= version <= high) == refused_in_words(key, version):
            unexplained.append((API_TABLE[key].name, version))
    assert unexplained == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_dropped_version_goes_through(cluster: str) -> None:
    """Requests with random values are translated to calls that can be encoded, or refused."""
    upstream = taken(cluster)
    translated = 0
    reasons: list[str] = []
    for key, version in dropped(cluster):
        api = API_TABLE[key]
        definition = load_definition(api.request.NAME)
        for seed in range(5):
            request = sample(api.request, definition, version, seed)
            if key == ApiKey.FETCH:
                request.replica_id = -1
            try:
                steps = translate(key, version, request, upstream)
                answer = answer_all(steps, upstream, seed)
            except NotForwarded as refusal:
                reasons.append(str(refusal))
                continue
            translated += 1
            if answer is not None:
                assert type(answer) is api.response
                answer.encode(version)
    assert translated > 100
    assert all(len(reason) > 20 for reason in reasons)


def answer_all(steps: Any, upstream: Ranges, seed: int, *, filled: bool = False) -> Any:
    """Answer each call of a translation with an empty or random response; return the result."""
    response = None
    for number in range(100):
        try:
            call = steps.send(response)
        except StopIteration as done:
            return done.value
        assert isinstance(call, NodeCall)
        low, high = upstream[call.api_key]
        assert low <= call.version <= high
        call.message.encode(call.version)
        response_class = API_TABLE[call.api_key].response
        made = response_class()
        if filled:
            made = sample(
                response_class, load_definition(response_class.NAME), call.version, seed * 1000 + number
            )
        response = response_class.decode(made.encode(call.version), call.version)
    raise AssertionError("it goes on for ever")


def test_a_cluster_of_4_lists_what_it_does_not_take() -> None:
    listed = {0: (0, 13), 1: (4, 18)}
    assert spoken(listed) == {0: (3, 13), 1: (4, 18)}
    assert offered(spoken(listed)) == {0: (0, 13), 1: (0, 18)}
    of_3_9 = {0: (0, 11), 1: (0, 17)}
    assert spoken(of_3_9) == of_3_9


def test_an_older_cluster_gets_what_both_have() -> None:
    of_0_10 = RELEASES["0.10.0"].api_versions()
    assert offered(of_0_10) == of_0_10
    beyond = {key: (low, high + 100) for key, (low, high) in taken("4.3").items()}
    ranges = offered({**beyond, 9999: (0, 1)})
    assert all(high == API_TABLE[key].versions[1] for key, (_, high) in ranges.items())
    assert 9999 not in ranges


def test_a_cluster_without_any_version_that_is_known_offers_nothing() -> None:
    assert offered({ApiKey.PRODUCE: (100, 120)}) == {}
    with pytest.raises(NotForwarded, match="does not take Produce 1"):
        translate(ApiKey.PRODUCE, 1, API_TABLE[0].request(), {ApiKey.PRODUCE: (100, 120)})
    with pytest.raises(NotForwarded, match="no API with key 4711"):
        translate(4711, 0, API_TABLE[0].request(), {})


def test_zookeeper_semantics_need_a_coordinator() -> None:
    ranges = offered({ApiKey.OFFSET_COMMIT: (2, 10)})
    assert ranges[ApiKey.OFFSET_COMMIT] == (1, 10)


def test_rules_of_an_api_leave_no_gap() -> None:
    for rule in RULES:
        low, high = rule.versions
        assert 0 <= low <= high < rule.targets[1] <= API_TABLE[rule.api_key].versions[1]
        assert rule.targets[0] > low
        assert rule.done.endswith(".")
        assert not rule.inexact or rule.inexact.endswith(".")


@for_each(
    [
        (ApiKey.FETCH, 0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ApiKey.FETCH, 3, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE),
        (ApiKey.METADATA, 0, ErrorCode.LISTENER_NOT_FOUND, ErrorCode.LEADER_NOT_AVAILABLE),
        (ApiKey.PRODUCE, 2, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE),
        (ApiKey.PRODUCE, 2, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ApiKey.FETCH, 0, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ApiKey.PRODUCE, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ApiKey.CREATE_TOPICS, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.REQUEST_TIMED_OUT),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 61, 61),
        (ApiKey.PRODUCE, 0, 12345, ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
)
def test_codes_are_as_old_as_the_client(key: int, version: int, code: int, becomes: int) -> None:
    assert older_code(code, highest_code(key, version)) == becomes


def test_what_can_be_tried_again_stays_so() -> None:
    for code in ErrorCode:
        older = ErrorCode(older_code(code, 44))
        assert older <= 44
        if code.retriable and code not in (ErrorCode.MEMBER_ID_REQUIRED,):
            assert older.retriable, code


def test_a_cluster_of_some_day_is_reached_from_version_0() -> None:
    """The gateway offers version 0 for any lowest version of a cluster within the translation's range."""
    for key in {rule.api_key for rule in RULES}:
        reached = max(rule.targets[1] for rule in RULES if rule.api_key == key)
        needs = {
            other: API_TABLE[other].versions for other in (ApiKey.FIND_COORDINATOR, ApiKey.SASL_AUTHENTICATE)
        }
        for lowest in range(1, reached + 1):
            low, high = offered({**needs, key: (lowest, reached)})[key]
            assert (low, high) == (0, reached), (API_TABLE[key].name, lowest)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_cluster_answers_becomes_an_answer(seed: int) -> None:
    """A response with random values can be encoded at the client's version, or is refused."""
    answered = refused = 0
    for rule in RULES:
        for version in range(rule.versions[0], rule.versions[1] + 1):
            lowest = max(rule.targets[0], version + 1)
            if lowest > rule.targets[1]:
                continue
            upstream = {10: (0, 6), 36: (0, 2), rule.api_key: (lowest, rule.targets[1])}
            api = API_TABLE[rule.api_key]
            request = sample(api.request, load_definition(api.request.NAME), version, seed)
            if rule.api_key == ApiKey.FETCH:
                request.replica_id = -1
            try:
                answer = answer_all(
                    translate(rule.api_key, version, request, upstream), upstream, seed, filled=True
                )
            except NotForwarded:
                refused += 1
                continue
            answered += 1
            if answer is not None:
                answer.encode(version)
    assert answered > 5 * refused
