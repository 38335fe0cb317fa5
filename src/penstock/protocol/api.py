"""The table of Kafka's APIs: the key, name, versions and header versions of each."""

from __future__ import annotations

import importlib

from penstock.protocol.api_keys import API_ROWS
from penstock.protocol.api_keys import ApiKey as ApiKey
from penstock.protocol.message import Message


class Api:
    """One API of the protocol. Its message classes `request` and `response` are imported on first use."""

    __slots__ = (
        "_request",
        "_response",
        "flexible_since",
        "key",
        "latest_unstable",
        "listeners",
        "name",
        "versions",
    )

    def __init__(
        self,
        key: int,
        name: str,
        versions: tuple[int, int],
        flexible_since: int | None,
        latest_unstable: bool,
        listeners: tuple[str, ...],
    ) -> None:
        self.key = key
        self.name = name
        self.versions = versions
        self.flexible_since = flexible_since
        self.latest_unstable = latest_unstable
        self.listeners = listeners
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    @property
    def request(self) -> type[Message]:
        """The class of the API's request."""
        if self._request is None:
            self._request = _message_class(self.name + "Request")
        return self._request

    @property
    def response(self) -> type[Message]:
        """The class of the API's response."""
        if self._response is None:
            self._response = _message_class(self.name + "Response")
        return self._response

    @property
    def stable_versions(self) -> tuple[int, int]:
        """The lowest and highest version if unstable ones are not enabled. No version if lowest > highest."""
        low, high = self.versions
        return low, high - self.latest_unstable

    def is_flexible(self, version: int) -> bool:
        """Return True if a version of the API uses compact types and tagged fields (KIP-482)."""
        return self.flexible_since is not None and version >= self.flexible_since

    def __repr__(self) -> str:
        return f"<Api {self.key} {self.name} {self.versions[0]}-{self.versions[1]}>"


def _message_class(name: str) -> type[Message]:
    found: type[Message] = getattr(importlib.import_module("penstock.protocol.messages"), name)
    return found


API_TABLE: dict[int, Api] = {
    key: Api(key, name, (low, high), flexible_since, unstable, listeners)
    for key, name, low, high, flexible_since, unstable, listeners in API_ROWS
}
"""Every API by key, including those that Kafka has removed."""


def stable_versions(request_class: type[Message]) -> tuple[int, int]:
    """Return the lowest and highest version of a request to use if unstable ones are not enabled."""
    low, high = request_class.VERSIONS
    definition = request_class.DEFINITION
    if definition is not None:
        return low, high - definition.latest_unstable
    api = API_TABLE.get(-1 if request_class.API_KEY is None else request_class.API_KEY)
    return api.stable_versions if api is not None else (low, high)


# Plain numbers, because every request is compared with them.
_API_VERSIONS = int(ApiKey.API_VERSIONS)
_CONTROLLED_SHUTDOWN = int(ApiKey.CONTROLLED_SHUTDOWN)


def request_header_version(key: int, version: int) -> int:
    """Return the version of the header of a request.

    Raises:
        KeyError: there is no such API.
    """
    if API_TABLE[key].is_flexible(version):
        return 2
    # ControlledShutdown v0 alone carries no client id.
    return 0 if key == _CONTROLLED_SHUTDOWN and version == 0 else 1


def response_header_version(key: int, version: int) -> int:
    """Return the version of the header of a response.

    Raises:
        KeyError: there is no such API.
    """
    # A client reads the answer to ApiVersions before it has the broker's versions.
    return 1 if key != _API_VERSIONS and API_TABLE[key].is_flexible(version) else 0
