"""What a translation of versions is for the gateway, and the one that translates nothing."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.gateway.calls import Call
    from penstock.protocol.message import Message


class Translation(Protocol):
    """Answers requests in versions that the cluster does not have. A module may be one."""

    @property
    def Refused(self) -> type[Exception]:  # noqa: N802
        """The exception for what cannot be translated; its text is the reason."""

    def spoken(self, advertised: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Return the versions that a broker really takes, of those in its answer to ApiVersions."""

    def offered(self, upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Return the first and last version of each API that clients may be offered.

        `upstream` is what `spoken` has returned for the broker behind the gateway, by API key.
        """

    def translate(
        self, api_key: int, version: int, request: Message, upstream: Mapping[int, tuple[int, int]]
    ) -> Generator[Call, Message, Message | None]:
        """Yield requests to the cluster, and return the response at the version of the client.

        The response is None where the protocol has none (acks=0). Raises `Refused`.
        """


class RefusedError(Exception):
    """A request that is not translated. Its text is the reason."""


class NoTranslation:
    """Offers what the broker has, and translates nothing."""

    Refused = RefusedError

    def spoken(self, advertised: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return dict(advertised)

    def offered(self, upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return dict(upstream)

    def translate(
        self, api_key: int, version: int, request: Message, upstream: Mapping[int, tuple[int, int]]
    ) -> Generator[Call, Message, Message | None]:
        raise RefusedError(f"the cluster has no version {version} of {request.NAME}")
