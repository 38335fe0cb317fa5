"""The interface of a translation between API versions, and an implementation that translates nothing."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.gateway.calls import NodeCall
    from penstock.protocol.message import Message


class Translation(Protocol):
    """The interface for translating requests of versions that the cluster does not support.

    A module with these functions implements it, too."""

    @property
    def Refused(self) -> type[Exception]:  # noqa: N802
        """The exception for a request that cannot be translated. Its text is the reason."""

    def spoken(self, advertised: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Return the API versions that a broker really supports; `advertised` are those in ApiVersions."""

    def offered(self, upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Return the first and last version of each API that clients may use.

        `upstream` are the versions of the broker, by API key, as returned by `spoken`.
        """

    def translate(
        self, api_key: int, version: int, request: Message, upstream: Mapping[int, tuple[int, int]]
    ) -> Generator[NodeCall, Message, Message | None]:
        """Yield requests to the cluster, and return the response in the client's version.

        The response is None if the protocol has none (acks=0). Raises `Refused` if there is no translation.
        """


class UntranslatableError(Exception):
    """Raised for a request that is not translated. Its message is the reason."""


class NoTranslation:
    """A translation that offers clients the broker's own versions, and refuses all other versions."""

    Refused = UntranslatableError

    def spoken(self, advertised: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return dict(advertised)

    def offered(self, upstream: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        return dict(upstream)

    def translate(
        self, api_key: int, version: int, request: Message, upstream: Mapping[int, tuple[int, int]]
    ) -> Generator[NodeCall, Message, Message | None]:
        raise UntranslatableError(f"the cluster has no version {version} of {request.NAME}")
