"""The rules of translation: versions of clients, versions of the cluster, and the function between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import replace_codes
from penstock.gateway.translation.fields import convert
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

M = TypeVar("M", bound=Message)

Ranges: TypeAlias = "Mapping[int, tuple[int, int]]"
"""Lowest and highest version by API key, as a broker's ApiVersions has them."""

Steps: TypeAlias = Generator[NodeCall, Any, Message | None]
"""A translation in progress: it yields calls, is sent their responses, and returns the response to the
client."""


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """A client's request, and the version in which the cluster is asked instead."""

    api_key: int
    version: int
    request: Any
    target: int
    upstream: Ranges


@dataclass(frozen=True, slots=True)
class TranslationRule:
    """The translation of some versions of an API. `done` and `inexact` are texts of the reference page."""

    api_key: int
    versions: tuple[int, int]
    """The first and last version of the client's request."""
    targets: tuple[int, int]
    """The first and last version of the cluster to which requests can be translated."""
    run: Callable[[TranslatedRequest], Steps]
    done: str
    inexact: str = ""
    takes_highest: bool = False
    """Whether the highest possible target version is chosen, and not the lowest."""
    needs: tuple[int, ...] = ()
    """Other APIs that the cluster must have for this rule."""

    def target(self, version: int, upstream: Ranges) -> int | None:
        """Return the version for the request to the cluster, or None if the cluster has none that fits."""
        offered = upstream.get(self.api_key)
        first, last = self.versions
        if offered is None or not first <= version <= last or any(key not in upstream for key in self.needs):
            return None
        low, high = max(self.targets[0], offered[0], version + 1), min(self.targets[1], offered[1])
        if low > high:
            return None
        return high if self.takes_highest else low


def by_fields(asked: TranslatedRequest) -> Steps:
    """Translate a request and its answer by the names of their fields.

    Raises:
        Refused: the request has a value that the cluster's version has no field for.
    """
    request = convert(asked.request, asked.version, asked.target)
    response: Message = yield NodeCall(asked.api_key, asked.target, request)
    return answered(response, asked)


def by_fields_exactly(asked: TranslatedRequest) -> Steps:
    """Translate a request and its answer, none of whose fields may be lost.

    Raises:
        Refused: the request or the response has a value that the other version has no field for.
    """
    request = convert(asked.request, asked.version, asked.target)
    response: Message = yield NodeCall(asked.api_key, asked.target, request)
    return answered(response, asked, may_lose=False)


def answered(response: M, asked: TranslatedRequest, *, may_lose: bool = True) -> M:
    """Return the cluster's response in the client's version, with error codes that the client has.

    Raises:
        Refused: the response has a null, or (unless it `may_lose` fields) another value that the client's
            version has no place for.
    """
    converted = convert(response, asked.target, asked.version, may_lose=may_lose)
    replace_codes(converted, asked.version)
    return converted
