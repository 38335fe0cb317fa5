"""Routes: how a request of an API and version is handled: forwarded, translated, answered or refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import TYPE_CHECKING

from penstock.gateway.addresses import has_addresses
from penstock.gateway.heads import SASL_KEYS, produce_acks
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import encode_response
from penstock.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.since import FETCH_ENDPOINTS_SINCE

if TYPE_CHECKING:
    from penstock.gateway.versions import Translation


class GatewayRoute(IntEnum):
    """The ways in which the gateway handles a request."""

    PASS = auto()
    """Request and response are forwarded as bytes."""
    PRODUCE = auto()
    """The request is forwarded as bytes; a Produce request with acks=0 has no response."""
    REWRITE = auto()
    """The request is forwarded as bytes; its response is decoded, to replace brokers' addresses by the
    gateway's."""
    FETCH = auto()
    """The request is forwarded as bytes; a short response is decoded, a long one forwarded as it arrives."""
    VERSIONS = auto()
    """ApiVersions: the gateway reads the request, and replaces the versions in the broker's response."""
    VERSIONS_HERE = auto()
    """ApiVersions in a version that the broker does not support: the gateway itself answers the request."""
    LOGIN = auto()
    """A SASL request: forwarded to the broker, or refused if the gateway itself logs in at brokers."""
    TRANSLATE = auto()
    HOOKED = auto()
    """The request is collected and passed through hooks, and then handled like a request without hooks."""
    REFUSE = auto()
    """The request is refused, because its API or version does not exist."""


PASSED_ON = (GatewayRoute.PASS, GatewayRoute.PRODUCE, GatewayRoute.REWRITE, GatewayRoute.FETCH)


class ResponseKind(IntEnum):
    """The ways in which the gateway handles the response to a forwarded request."""

    PASS = auto()
    REWRITE = auto()
    FETCH = auto()
    CALL = auto()
    """The response answers a request that the gateway itself has sent, for a translation or a hook."""
    HANDSHAKE = auto()
    """A response to SaslHandshake 0; after a success, SASL tokens without headers follow."""
    TOKEN = auto()
    """The response is a raw SASL token without a header."""
    HERE = auto()
    """A response that the gateway made itself; it is sent once earlier requests are answered."""


class BrokerRoutes:
    """The treatment (`GatewayRoute`) of requests to one broker, for each ``(api_key << 16) | version``.

    `upstream` are the API versions that the broker supports.
    """

    def __init__(self, upstream: Mapping[int, tuple[int, int]], translation: Translation) -> None:
        self.upstream = clamped(translation.spoken(upstream))
        self.offered = clamped(translation.offered(self.upstream))
        self._found: dict[int, GatewayRoute] = {}

    def of(self, code: int) -> GatewayRoute:
        """Return the `GatewayRoute` for a request of an API and version."""
        found = self._found.get(code)
        if found is None:
            found = self._found[code] = self._route(code >> 16, code & 0xFFFF)
        return found

    def _route(self, key: int, version: int) -> GatewayRoute:
        low, high = self.upstream.get(key, (0, -1))
        has = low <= version <= high
        if key == ApiKey.API_VERSIONS:
            return GatewayRoute.VERSIONS if has else GatewayRoute.VERSIONS_HERE
        if has:
            if key in SASL_KEYS:
                return GatewayRoute.LOGIN
            if key == ApiKey.PRODUCE:
                return GatewayRoute.PRODUCE
            if key == ApiKey.FETCH and version >= FETCH_ENDPOINTS_SINCE:
                return GatewayRoute.FETCH
            return GatewayRoute.REWRITE if has_addresses(key, version) else GatewayRoute.PASS
        low, high = self.offered.get(key, (0, -1))
        if low <= version <= high:
            return GatewayRoute.TRANSLATE
        api = API_TABLE.get(key)
        if api is None or not api.versions[0] <= version <= api.versions[1]:
            return GatewayRoute.REFUSE
        return (
            GatewayRoute.TRANSLATE
        )  # clients without ApiVersions ask in versions that they were not offered

    def kind_of(self, code: int, data: memoryview, position: int) -> ResponseKind | None:
        """Return how the response to a forwarded request is handled, or None if there will be no response.

        The request begins in `data` with its size field at `position`.

        Raises:
            Incomplete: more bytes of a Produce are needed.
            DecodeError: a Produce is malformed.
        """
        route = self.of(code)
        if route is GatewayRoute.PRODUCE:
            key, version = code >> 16, code & 0xFFFF
            if not produce_acks(data, position, version):
                return None
            return ResponseKind.REWRITE if has_addresses(key, version) else ResponseKind.PASS
        if route is GatewayRoute.FETCH:
            return ResponseKind.FETCH
        return ResponseKind.PASS if route is GatewayRoute.PASS else ResponseKind.REWRITE

    def put_versions(
        self, response: ApiVersionsResponse, here: Mapping[int, tuple[int, int]] | None = None
    ) -> None:
        """Replace the API versions in a broker's ApiVersions response by those that the gateway offers.

        `here` is a dict of the APIs that the gateway answers itself, with their versions.
        """
        response.api_keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted({**self.offered, **(here or {})}.items())
        ]


def versions_response(
    routes: BrokerRoutes, version: int, correlation_id: int, here: Mapping[int, tuple[int, int]] | None = None
) -> list[bytes | bytearray | memoryview]:
    """Encode an ApiVersions response of the gateway. `here` has the APIs that the gateway answers itself."""
    response = ApiVersionsResponse()
    routes.put_versions(response, here)
    low, high = routes.offered.get(ApiKey.API_VERSIONS, (0, -1))
    if not low <= version <= high:
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
        version = 0  # KIP-511
    return encode_response(response, version, correlation_id)


def clamped(versions: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Limit API versions to those that the gateway can decode.

    In other versions, it could not replace brokers' addresses.
    """
    found = {}
    for key, (low, high) in versions.items():
        api = API_TABLE.get(key)
        if api is not None:
            lowest, highest = max(low, api.versions[0]), min(high, api.versions[1])
            if lowest <= highest:
                found[key] = (lowest, highest)
    return found
