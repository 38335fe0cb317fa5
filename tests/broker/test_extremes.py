"""Tests with extreme field values: a request is answered or its connection closed, and no handler raises.

Each field of each request, in each version, takes its extreme values in turn; then many fields take them at
once. The broker has records, committed offsets and a group with a member, whose names the requests use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import count as count_from
from pathlib import Path

import pytest

from broker.bench_node import EVERY_API, NOW_MS, batch_of, context_of, produce
from broker.extreme_requests import at_random, count, filled, malformed, places, set_extreme
from broker.groups.bench_group import Bench
from broker.handlers.test_every_version import CASES, REQUESTS
from for_each import for_each
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import INT, LONG, LONG_MAX
from penstock.broker.config.security_settings import KEYS
from penstock.broker.config.values import BrokerConfig
from penstock.broker.context import CloseConnection, Context
from penstock.broker.handlers import ROUTES
from penstock.broker.metadata.stores import open_disk_store
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import LogStore
from penstock.broker.requests.dispatch import Unanswered, answer
from penstock.broker.session import Principal
from penstock.clock import ManualClock
from penstock.errors import EncodeError
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse

ON_DISK = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.DELETE_RECORDS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.OFFSET_COMMIT,
)
"""APIs that are also tested with logs on disk: their numbers are offsets and times in files."""

COMBINATIONS = 15
"""The number of requests with many extreme fields, for each version of each API."""


NEWEST = [case for case in CASES if case[1] == ROUTES[case[0]].max_version]


def longest_times() -> dict[str, str]:
    """Return settings in which every timeout has the largest value of its type.

    Minimum times, heartbeat intervals and the initial rebalance delay are left out.
    """
    kept = re.compile(r"\.min\.|\.heartbeat\.interval\.|initial\.rebalance")
    found = {}
    for name, key in BROKER_KEYS.items():
        if name.endswith(".ms") and key.type in (INT, LONG) and not kept.search(name):
            end = LONG_MAX if key.type == LONG else 2**31 - 1
            found[name] = str(end if key.at_most is None else min(end, int(key.at_most)))
    tokens = [name for name in KEYS if name.startswith("delegation.token.") and name.endswith("time.ms")]
    return found | dict.fromkeys(tokens, str(LONG_MAX))


class Asker:
    """A broker that gets the test requests.

    It is made anew when a request has removed its records, offsets or members.
    """

    def __init__(
        self,
        make_store: Callable[[ManualClock], LogStore] | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self._make_store = make_store
        self._settings = {"delegation.token.secret.key": "secret"} | (settings or {})
        self._make()

    def _make(self) -> None:
        clock = ManualClock(NOW_MS)
        store = self._make_store(clock) if self._make_store else None
        self.bench = bench = Bench(store, clock, **EVERY_API, **self._settings)
        self.node: Node = bench.node
        produce(self.node, batch_of(b"a", b"b"))
        joined = bench.join().response
        self.member_id = joined.member_id
        bench.sync(self.member_id, 1, {self.member_id: b"all"})
        bench.commit(1, self.member_id, 1)
        made = ROUTES[ApiKey.CREATE_DELEGATION_TOKEN].handle(CreateDelegationTokenRequest(), self._context(1))
        assert isinstance(made, CreateDelegationTokenResponse)
        assert made.error_code == 0
        self.hmac = made.hmac

    def _context(self, version: int) -> Context:
        """Return the context of an authenticated client, which delegation token requests require."""
        context = context_of(self.node, version)
        session = context.session
        session.principal = Principal("User", "ann")
        session.security_protocol, session.mechanism = "SASL_SSL", "PLAIN"
        return context

    @property
    def is_whole(self) -> bool:
        group = self.node.groups.coordinator.groups.get("g")
        has_member = group is not None and self.member_id in group.members and group.state == "Stable"
        has_token = len(self.node.cluster.security.tokens) == 1
        return (
            has_member
            and has_token
            and "t" in self.node.cluster.topics
            and len(self.node.cluster.topics) < 40
        )

    def request(self, key: ApiKey, version: int) -> Message:
        if not self.is_whole:
            self._make()
        request = filled(REQUESTS[key](self.node, version), version)
        for place in places(request, version):
            if place.attribute == "member_id":
                setattr(place.holder, place.attribute, self.member_id)
            elif place.attribute.startswith("generation_id"):
                setattr(place.holder, place.attribute, 1)
            elif place.attribute == "hmac":
                setattr(place.holder, place.attribute, self.hmac)
            elif place.attribute.endswith("principal_type"):
                setattr(place.holder, place.attribute, "User")
        return request

    def ask(self, request: Message, version: int) -> None:
        """Send a request; a request that waits is answered when its deadline has passed."""
        frame = malformed(b"".join(map(bytes, encode_request(request, version, 7, "bench")))[4:])
        context = self._context(version)
        try:
            outcome = answer(memoryview(bytearray(frame)), context)
            if isinstance(outcome, Unanswered):
                self._wait(outcome, context)
        except CloseConnection:
            pass
        self.bench.clock.advance(1)
        self.bench.run()

    def _wait(self, outcome: Unanswered, context: Context) -> None:
        """Resume a request after its deadline; one without a deadline stays parked."""
        deadline = outcome.wait.deadline
        parked = self.node.purgatory.park(outcome.wait, outcome.run)
        if deadline < float("inf"):
            self.node.purgatory.cancel(parked)
            context.now = max(deadline, context.now) + 1
            outcome.run()


@pytest.fixture(scope="module")
def asker() -> Asker:
    return Asker()


@for_each(CASES)
def test_one_extreme_value_at_a_time(key: ApiKey, version: int, asker: Asker) -> None:
    _try_one_at_a_time(key, version, asker)


def _try_one_at_a_time(key: ApiKey, version: int, asker: Asker) -> None:
    for number in range(count(asker.request(key, version), version)):
        request = asker.request(key, version)
        done = set_extreme(request, version, number)
        _ask(asker, request, version, done)
    _let_time_pass(asker)


@for_each(CASES)
def test_many_extreme_values_at_once(key: ApiKey, version: int, asker: Asker) -> None:
    dice = random.Random(f"{key.name} {version}")
    for _ in range(COMBINATIONS):
        request = asker.request(key, version)
        done = at_random(request, version, dice)
        _ask(asker, request, version, done)
    _let_time_pass(asker)


@pytest.mark.parametrize(
    ("key", "version"),
    [case for case in NEWEST if case[0] in ON_DISK],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_one_extreme_value_at_a_time_with_logs_on_disk(key: ApiKey, version: int, tmp_path: Path) -> None:
    numbers = count_from(1)

    def make_store(clock: ManualClock) -> LogStore:
        return open_disk_store(str(tmp_path / str(next(numbers))), BrokerConfig({}), clock)

    _try_one_at_a_time(key, version, Asker(make_store))


@pytest.fixture(scope="module")
def patient_asker() -> Asker:
    return Asker(settings=longest_times())


@for_each(NEWEST)
def test_one_extreme_value_at_a_time_where_everything_may_take_longest(
    key: ApiKey, version: int, patient_asker: Asker
) -> None:
    _try_one_at_a_time(key, version, patient_asker)


def _let_time_pass(asker: Asker) -> None:
    """Let timers and maintenance run, since they may compute with the extreme values later."""
    for _ in range(3):
        asker.bench.wait(20_000)
        assert asker.node.maintain(asker.bench.clock.now_ms()) == []
    assert asker.node.failures.counts == {}


def _ask(asker: Asker, request: Message, version: int, done: str) -> None:
    try:
        asker.ask(request, version)
    except EncodeError as error:
        if error.__traceback__ is not None and "Request" in str(error):
            return  # the request itself cannot be sent
        raise AssertionError(f"{type(request).__name__} v{version}: {done}") from error
    except Exception as error:
        raise AssertionError(f"{type(request).__name__} v{version}: {done}") from error
    assert asker.node.failures.counts == {}, done


def test_numbers_at_their_ends_are_among_what_is_tried(asker: Asker) -> None:
    changes = count(asker.request(ApiKey.OFFSET_COMMIT, 2), 2)
    tried = {set_extreme(asker.request(ApiKey.OFFSET_COMMIT, 2), 2, number) for number in range(changes)}
    assert f".retention_time_ms = {2**63 - 1}" in tried
    assert f".topics.partitions.committed_offset = {-(2**63)}" in tried
