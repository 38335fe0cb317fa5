"""Tests of the group protocol that a consumer uses, by its option, its broker, and refusals."""

from __future__ import annotations

from typing import Any, cast

import pytest

from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.negotiation import NodeVersions
from penstock.client.group.protocol_choice import ProtocolChoice, has_consumer_groups
from penstock.errors import PenstockError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for

ANY_CLIENT = cast("AsyncClient", None)


@pytest.mark.parametrize(
    ("versions", "level", "has_them"),
    [((0, 1), 1, True), ((0, 1), 0, False), ((0, 1), None, False), ((0, 0), 1, False), (None, 1, False)],
)
def test_what_a_broker_needs_for_consumer_groups(
    versions: tuple[int, int] | None, level: int | None, has_them: bool
) -> None:
    ranges = {} if versions is None else {ApiKey.CONSUMER_GROUP_HEARTBEAT: versions}
    features = {} if level is None else {"group.version": level}
    broker = NodeVersions(cast("Any", "b:9092"), cast("Any", ranges), features=features)
    assert has_consumer_groups(broker) is has_them


REFUSALS: list[tuple[bool, PenstockError, bool]] = [
    (True, error_for(ErrorCode.GROUP_ID_NOT_FOUND), True),
    (True, error_for(ErrorCode.UNSUPPORTED_VERSION), True),
    (True, UnsupportedVersionError("an older coordinator"), True),
    (True, error_for(ErrorCode.UNSUPPORTED_ASSIGNOR), False),
    (True, error_for(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), False),
    (False, error_for(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), True),
    (False, error_for(ErrorCode.GROUP_ID_NOT_FOUND), False),
    (False, UnsupportedVersionError("an older coordinator"), False),
]


@pytest.mark.parametrize(("speaks_consumer", "error", "switches"), REFUSALS)
def test_auto_tries_the_other_protocol_once(
    speaks_consumer: bool, error: PenstockError, switches: bool
) -> None:
    choice = ProtocolChoice(ANY_CLIENT, "auto")
    choice.speaks_consumer = speaks_consumer
    assert choice.switches_after(error) is switches
    assert choice.speaks_consumer is (speaks_consumer != switches)
    if switches:
        choice.speaks_consumer = speaks_consumer
        assert not choice.switches_after(error)  # the other one was refused, too
        choice.joined()
        assert choice.switches_after(error)


@pytest.mark.parametrize("option", ["classic", "consumer"])
def test_a_protocol_that_is_named_stays(option: str) -> None:
    for _, error, _ in REFUSALS:
        choice = ProtocolChoice(ANY_CLIENT, option)
        assert not choice.switches_after(error)
        assert choice.speaks_consumer is (option == "consumer")
