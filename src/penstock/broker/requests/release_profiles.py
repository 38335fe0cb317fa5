"""Release profiles, which make this broker behave like a given release of Apache Kafka.

A profile restricts APIs and versions to those of the release. It also describes legacy behaviour that does
not depend on API versions: no ApiVersions, the stored message format, the error for a topic that is being
created, the error codes that existed. Handlers read the profile for these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.requests.routes import when_answered
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_history import highest_error
from penstock.protocol.message import Struct
from penstock.protocol.releases import FIRST_KRAFT, release

if TYPE_CHECKING:
    from penstock.broker.requests.routes import Route, VersionedRoute
    from penstock.protocol.message import Message

Numbers = tuple[int, ...]

_OLDER_ERRORS = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TIMESTAMP: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD: ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_ID: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""The replacements of error codes in releases that do not have them. Any other missing code becomes -1."""

_METADATA_LEVELS: tuple[tuple[Numbers, int], ...] = (
    ((3, 3), 7),
    ((3, 4), 8),
    ((3, 5), 11),
    ((3, 6), 14),
    ((3, 7), 19),
    ((3, 8), 20),
    ((3, 9), 21),
    ((4, 0), 25),
)
"""Pairs of a release and its level of `metadata.version`, which also applies to later releases up to the
next pair.
"""


class Profile:
    """The behaviour of one release of Apache Kafka.

    Raises:
        ConfigError: Apache Kafka has no such release.
    """

    def __init__(self, version: str) -> None:
        self._release = release(version)
        numbers = self._release.numbers
        self.has_api_versions = numbers >= (0, 10)
        self.lists_own_api = numbers >= (2, 4)
        """True if the error response to an unknown version of ApiVersions lists its supported versions."""
        self.ignores_versions = numbers < (0, 9)
        """True for 0.8, which decodes a request in the nearest version that it supports."""
        self.overlooks_unknown = (0, 9) <= numbers < (0, 10)
        """True for 0.9, which neither answers an unknown request nor closes the connection."""
        self.error_max = highest_error(numbers)
        self.creating_code = (
            ErrorCode.LEADER_NOT_AVAILABLE if numbers < FIRST_KRAFT else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        """The error code in Metadata for a topic that the Metadata request itself creates."""
        self.counts_acks = numbers < (0, 9)
        """True if acks above 1 is the number of replicas to wait for; otherwise it is an error."""
        self.failures_end_waits = numbers >= (0, 9)
        """True if a Fetch does not wait for `min_bytes` after the failure of one of its partitions."""
        levels = [level for since, level in _METADATA_LEVELS if since <= numbers]
        self.metadata_level = levels[-1] if levels else 0
        """The highest level of `metadata.version` of the release; 0 for releases with ZooKeeper."""
        self.transaction_level = 2 if numbers >= (4, 0) else 0
        """The highest level of `transaction.version` of the release; 0 before KIP-890."""
        self.share_level = 0 if numbers < (4, 2) else 1 if numbers < (4, 4) else 2
        """The highest level of `share.version` of the release; 1 before KIP-1191, 0 where it is a preview."""

    @property
    def name(self) -> str:
        """The release, such as ``0.10.2`` or ``2.8``."""
        return self._release.name

    def routes(self, known: Mapping[int, Route]) -> dict[int, Route]:
        """Return the routes (APIs with handlers) that the release has, in the versions that it can parse."""
        found = {}
        offered = self._release.api_versions(receiver=True)
        for key, route in known.items():
            api = self._release.apis.get(key)
            if api is None or key not in offered:
                continue
            low = max(route.min_version, api.lowest)
            high = min(route.max_version, api.highest - api.is_latest_unstable)
            if low <= high:
                found[key] = route._replace(min_version=low, max_version=high)
        return found

    def offers(self, routes: Mapping[int, Route]) -> dict[int, tuple[int, int]]:
        """Return the release's version ranges for the ApiVersions response, by API key.

        If the release has a higher version than this broker, this broker's highest version is listed.
        """
        offered = self._release.api_versions(receiver=True)
        return {
            key: (min(offered[key][0], route.min_version), min(offered[key][1], route.max_version))
            for key, route in sorted(routes.items())
        }

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Wrap a route so that its responses have only error codes that existed in the release."""
        handle = route.handle

        def translate(response: Message | None) -> Message | None:
            self._age_codes(response)
            return response

        return route._replace(
            handle=lambda request, context: when_answered(handle(request, context), translate)
        )

    def _age_codes(self, part: Any) -> None:
        if isinstance(part, list):
            for each in part:
                self._age_codes(each)
        elif isinstance(part, Struct):
            code = getattr(part, "error_code", 0)
            if code > self.error_max:
                part.error_code = self.code_of(code)  # type: ignore[attr-defined]
            for name in part.__slots__:
                value = getattr(part, name)
                if isinstance(value, list) and value and isinstance(value[0], Struct):
                    self._age_codes(value)

    def code_of(self, code: int) -> int:
        """Return the error code that the release uses for `code`."""
        while code > self.error_max:
            code = int(_OLDER_ERRORS.get(ErrorCode(code), ErrorCode.UNKNOWN_SERVER_ERROR))
        return code

    def version_of(self, route: Route, version: int) -> int:
        """Return the version with which to decode a request; some releases ignore the header's version."""
        if self.ignores_versions:
            return min(max(version, route.min_version), route.max_version)
        return version
