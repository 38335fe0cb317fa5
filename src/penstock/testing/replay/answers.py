"""Selects the recorded answer to a request. No I/O: `cluster` has the sockets.

ApiVersions is answered from any recorded answer, with the recorded versions of each API. Fetch is answered by
partition and offset, Produce record by record. Any other request gets the answers to the same request
(`content.content_of`) in recorded order; if the API changes nothing, the last answer is repeated. A Metadata
request for a combination of topics that was not recorded is answered from the newest answer for each topic.
"""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_response
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.testing.replay.addresses import broker_ids
from penstock.testing.replay.content import Content, content_of, first_difference
from penstock.testing.replay.exchanges import RecordedExchange, topic_names
from penstock.testing.replay.logs import Fetches, Produces, Unrecorded

REPEATED = frozenset(
    (
        *(ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH),
        *(ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT),
        *(ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
        *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_CLUSTER),
        *(ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE),
        *(ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_LOG_DIRS),
        *(ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TRANSACTIONS),
        *(ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS),
        *(ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_DELEGATION_TOKEN, ApiKey.DESCRIBE_QUORUM),
    )
)
"""APIs whose last recorded answer is repeated when all have been used: their requests change nothing."""


class ReplayedAnswer(NamedTuple):
    """A recorded answer, the version in which to encode it, and the time in ms to wait before it is sent."""

    message: Any
    version: int
    wait_ms: int = 0


class Answers:
    """Selects the recorded answers to requests in one replay. Most answers are used only once."""

    def __init__(self, exchanges: Sequence[RecordedExchange], masked: Sequence[str]) -> None:
        names = topic_names(exchanges)
        self._fetches = Fetches(exchanges, names)
        self._produces = Produces(exchanges, names, masked)
        self._waiting: dict[Content, deque[RecordedExchange]] = defaultdict(deque)
        self._versions: dict[int, set[int]] = defaultdict(set)
        self._offered: Any = None
        self._topics: dict[str, Any] = {}
        self._cluster: Any = None
        self.broker_ids: set[int] = set()
        """The ids of all brokers whose addresses are in the answers."""
        for exchange in exchanges:
            self._add(exchange)

    def _add(self, exchange: RecordedExchange) -> None:
        key, answer = exchange.api_key, exchange.answer()
        self._versions[key].add(exchange.version)
        if answer is not None:
            self.broker_ids |= broker_ids(answer)
        if key == ApiKey.API_VERSIONS:
            if answer is not None and answer.api_keys:
                self._offered = answer
        elif key not in (ApiKey.FETCH, ApiKey.PRODUCE) and answer is not None:
            self._waiting[content_of(exchange.asked(), exchange.version)].append(exchange)
            if key == ApiKey.METADATA:
                self._cluster = answer
                self._topics |= {each.name: each for each in answer.topics if each.name}

    def unasked(self) -> list[str]:
        """Return descriptions of recorded records and write requests that the application did not send."""
        left = [
            f"{each.api} v{each.version} of {each.client_id!r}, request {each.at_ms:g} ms into the recording"
            for waiting in self._waiting.values()
            for each in waiting
            if each.api_key not in REPEATED
        ]
        return [*self._produces.left_over(), *left]

    def reply(self, key: int, version: int, request: Any) -> ReplayedAnswer | None:
        """Return the answer to a request, or None for a Produce request without acknowledgement (acks=0).

        Raises:
            Unrecorded: the request was not recorded; the message describes the nearest recorded request.
        """
        if key == ApiKey.API_VERSIONS:
            return ReplayedAnswer(self._api_versions(version), version)
        if version not in self._versions[key]:
            known = ", ".join(map(str, sorted(self._versions[key])))
            raise Unrecorded(
                f"recorded are versions {known}" if known else "no request of this API is recorded"
            )
        if key == ApiKey.FETCH:
            message, is_empty = self._fetches.answer(request)
            return ReplayedAnswer(message, version, request.max_wait_ms if is_empty else 0)
        if key == ApiKey.PRODUCE:
            made = self._produces.answer(error_response(key, version, request, 0), request)
            return ReplayedAnswer(made, version) if request.acks else None
        return ReplayedAnswer(self._same(key, version, request), version)

    def _same(self, key: int, version: int, request: Any) -> Any:
        content = content_of(request, version)
        waiting = self._waiting.get(content)
        if not waiting:
            if key == ApiKey.METADATA:
                return self._metadata(request)
            if waiting is not None:
                raise Unrecorded("it was made more often than recorded")
            raise Unrecorded(self._nearest(content))
        exchange = waiting[0] if key in REPEATED and len(waiting) == 1 else waiting.popleft()
        return exchange.answer()

    def _nearest(self, content: Content) -> str:
        same = [
            each
            for each in self._waiting
            if (each.api_key, each.version) == (content.api_key, content.version)
        ]
        if not same:
            return "no answer to this API is recorded"
        nearest = max(
            same, key=lambda each: sum(a == b for a, b in zip(each.parts, content.parts, strict=False))
        )
        return first_difference(content.parts, nearest.parts)

    def _metadata(self, request: Any) -> Any:
        """Return Metadata, assembled topic by topic, for topics or flags that were not recorded together."""
        if self._cluster is None or request.topics is None:
            raise Unrecorded("no Metadata of all topics is recorded")
        names = [each.name or self._name_of(each.topic_id) for each in request.topics]
        missing = [name for name in names if name not in self._topics]
        if missing:
            raise Unrecorded(f"no Metadata of topic {missing[0]!r} is recorded")
        made = copy.copy(self._cluster)
        made.topics = [self._topics[name] for name in names if name is not None]
        made.brokers = [copy.copy(each) for each in made.brokers]
        return made

    def _name_of(self, topic_id: bytes) -> str | None:
        return next((name for name, each in self._topics.items() if each.topic_id == topic_id), None)

    def _api_versions(self, version: int) -> Any:
        """Return the recorded versions of recorded APIs, so that clients use them.

        For the other APIs, the versions are those that the recorded broker offered.
        """
        made = copy.copy(self._offered) if self._offered is not None else ApiVersionsResponse()
        low, high = API_TABLE[ApiKey.API_VERSIONS].versions
        offered = {each.api_key: (each.min_version, each.max_version) for each in made.api_keys}
        offered.setdefault(int(ApiKey.API_VERSIONS), (low, high))
        for key, versions in self._versions.items():
            if versions and key != ApiKey.API_VERSIONS:
                offered[key] = (min(versions), max(versions))
        made.api_keys = [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in sorted(offered.items())
        ]
        made.error_code = 0
        if version == 0:
            plain = ApiVersionsResponse()
            plain.api_keys = made.api_keys
            return plain
        return made

    def error(self, key: int, version: int, request: Any, reason: str) -> ReplayedAnswer:
        """Return an error response whose message says that the request was not recorded."""
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        return ReplayedAnswer(error_response(key, version, request, code, f"not recorded: {reason}"), version)
