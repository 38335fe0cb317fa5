"""Translation of requests whose versions the cluster does not support, and of the responses to them.

This package does no I/O: a translation is a generator that yields calls to the cluster, and the caller sends
it the responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.gateway.translation.errors import NotForwarded
from penstock.gateway.translation.rules import TranslatedRequest
from penstock.gateway.translation.table import RULES, reason_of
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.since import FETCH_MAGIC_2_SINCE, PRODUCE_MAGIC_2_SINCE

if TYPE_CHECKING:
    from penstock.gateway.calls import Ranges
    from penstock.gateway.translation.rules import Steps, TranslationRule
    from penstock.protocol.message import Message

Refused = NotForwarded
"""The exception for a request that cannot be translated. This name is part of the interface `Translation`.
"""


def spoken(advertised: Ranges) -> dict[int, tuple[int, int]]:
    """Return the API versions that a broker really supports; `advertised` are those of its ApiVersions.

    Brokers since Kafka 4.0 list Produce 0 to 2 because librdkafka needs that, but close the connection when
    they get a request in these versions (KAFKA-18659). They are recognized by their lowest version of Fetch.
    """
    ranges = dict(advertised)
    produce, fetch = ranges.get(ApiKey.PRODUCE), ranges.get(ApiKey.FETCH)
    if produce is not None and fetch is not None and fetch[0] >= FETCH_MAGIC_2_SINCE:
        ranges[ApiKey.PRODUCE] = (max(produce[0], PRODUCE_MAGIC_2_SINCE), produce[1])
    return ranges


def offered(upstream: Ranges) -> dict[int, tuple[int, int]]:
    """Return the versions that clients may use: those of the cluster, and all from which translation exists.

    `upstream` are the versions that the cluster supports, as `spoken` returns them. APIs and versions without
    a definition in this package are left out, since the gateway must be able to decode requests.
    """
    ranges: dict[int, tuple[int, int]] = {}
    for key, (lowest, highest) in upstream.items():
        api = API_TABLE.get(key)
        if api is None:
            continue
        low, high = max(lowest, api.versions[0]), min(highest, api.versions[1])
        if low > high:
            continue
        while low and _rule(key, low - 1, upstream) is not None:
            low -= 1
        ranges[key] = low, high
    return ranges


def translate(api_key: int, version: int, request: Message, upstream: Ranges) -> Steps:
    """Return a generator that translates a request whose version the cluster does not support.

    The generator yields a `NodeCall` for each request to the cluster; the caller sends it the decoded
    response. It returns the response in the client's version, or None if the client expects none (acks 0).
    `upstream` are the versions that the cluster supports, as `spoken` returns them. The request is not
    changed.

    Raises:
        Refused: there is no translation, or it cannot be completed; the message is the reason. Both this
            function and the generator may raise it.
    """
    rule = _rule(api_key, version, upstream)
    target = None if rule is None else rule.target(version, upstream)
    if rule is None or target is None:
        raise Refused(reason_of(api_key, version))
    return rule.run(TranslatedRequest(api_key, version, request, target, upstream))


def _rule(api_key: int, version: int, upstream: Ranges) -> TranslationRule | None:
    for rule in RULES:
        if rule.api_key == api_key and rule.target(version, upstream) is not None:
            return rule
    return None
