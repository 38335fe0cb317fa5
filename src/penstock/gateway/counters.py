"""Counts of requests and bytes by client software, address, API and version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.gateway.heads import client_id_of, decoded_request
from penstock.gateway.limits import CLIENTS_MAX
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.since import API_VERSIONS_SOFTWARE_SINCE

OTHERS = ("others", "")
"""The name and version for the common count of all clients beyond the first `CLIENTS_MAX` kinds."""

NAME_CHARACTERS_MAX = 200


class ClientCount(NamedTuple):
    """Counts of requests and bytes for one kind of client, one API and one version: a row for reports.

    `software` and `software_version` are those of ApiVersions 3 and later (KIP-511), or empty. Clients
    without a software name are distinguished by `client_id`, which is empty for other clients.
    """

    software: str
    software_version: str
    client_id: str
    address: str
    """The client's IP address, without the port."""
    api: str
    version: int
    requests: int
    request_bytes: int
    response_bytes: int
    is_spoken: bool
    """True if the broker that was connected last supports this version. Otherwise requests of this version
    are translated.
    """


class Counts:
    """The counts of one kind of client: its requests and bytes for each API and version."""

    __slots__ = ("by_code",)

    def __init__(self) -> None:
        self.by_code: dict[int, list[int]] = {}
        """A dict from ``(api_key << 16) | version`` to [number of requests, their total bytes, the responses'
        total bytes]."""

    def asked(self, code: int, size: int) -> None:
        """Count a request of `size` bytes in an API and version."""
        counted = self.by_code.get(code)
        if counted is None:
            counted = self.by_code[code] = [0, 0, 0]
        counted[0] += 1
        counted[1] += size

    def answered(self, code: int, size: int) -> None:
        """Add the size of a response, if its request was counted."""
        counted = self.by_code.get(code)
        if counted is not None:
            counted[2] += size


class Counters:
    """The counts of all kinds of clients: a `Counts` per combination of software, client id and address."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str, str], Counts] = {}

    def of(self, software: str, version: str, client_id: str, peer: str) -> Counts:
        """Return the `Counts` of a kind of client. `peer` is the client's address as ``host:port``."""
        kind = (
            software[:NAME_CHARACTERS_MAX],
            version[:NAME_CHARACTERS_MAX],
            client_id[:NAME_CHARACTERS_MAX],
            peer.rpartition(":")[0],
        )
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) >= CLIENTS_MAX:
                kind = (*OTHERS, "", "")
            found = self._kinds.setdefault(kind, Counts())
        return found

    def rows(self, spoken: Mapping[int, tuple[int, int]]) -> list[ClientCount]:
        """Return one row for each kind of client, API and version. Any thread may call this method.

        `spoken` is a dict from API keys to the versions that the cluster supports.
        """
        found = []
        for (software, version, client_id, address), counts in list(self._kinds.items()):
            for code, counted in list(counts.by_code.items()):
                api = API_TABLE.get(code >> 16)
                name = api.name if api is not None else str(code >> 16)
                low, high = spoken.get(code >> 16, (0, -1))
                at = code & 0xFFFF
                client = software, version, client_id, address
                requests, asked, answered = counted
                is_spoken = low <= at <= high
                found.append(ClientCount(*client, name, at, requests, asked, answered, is_spoken))
        return sorted(found)


class CountedClient:
    """The client of one connection: its software name and client id, and the counts of its requests.

    Args:
        counters: the counts of all clients.
        peer: the client's address, as ``host:port``.
    """

    def __init__(self, counters: Counters, peer: str) -> None:
        self.software = ("", "")
        """The name and version of the client's software (KIP-511); two empty strings before the client has
        sent them."""
        self.client_id: str | None = None
        """The client id of the first request; empty if the software is known, None before the first
        request."""
        self._counters = counters
        self._peer = peer
        self._counts = Counts()

    def introduce(self, body: memoryview, version: int) -> None:
        """Set name and version of the client's software from an ApiVersions request (without size field).

        Raises:
            DecodeError: the request cannot be decoded.
        """
        if version < API_VERSIONS_SOFTWARE_SINCE or not API_TABLE[ApiKey.API_VERSIONS].versions[1] >= version:
            return
        _, message = decoded_request(body)
        self.software = message.client_software_name, message.client_software_version
        self._counts = self._counters.of(*self.software, "", self._peer)
        self.client_id = ""

    def asked(self, code: int, data: memoryview, position: int) -> None:
        """Count the request whose size field is at `position` in `data`."""
        if self.client_id is None:
            self.client_id = client_id_of(data[position:])
            self._counts = self._counters.of(*self.software, self.client_id, self._peer)
        self._counts.asked(code, 4 + int.from_bytes(data[position : position + 4], "big"))

    def answered(self, code: int, size: int) -> None:
        """Add the size of a response, if its request was counted."""
        self._counts.answered(code, size)

    @property
    def described(self) -> str:
        """The client's address and name, for the log."""
        name = " ".join(filter(None, self.software)) or self.client_id
        return f"{self._peer} ({name})" if name else self._peer
