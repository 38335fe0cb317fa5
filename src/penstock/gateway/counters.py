"""Which clients a gateway has met: requests and bytes by client software, address, API and version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.gateway.limits import CLIENTS_MAX
from penstock.protocol.api import API_TABLE

OTHERS = ("others", "")
"""The software under which clients are counted beyond `CLIENTS_MAX` kinds."""

NAME_CHARACTERS_MAX = 200


class ClientCount(NamedTuple):
    """Requests of one kind of client in one version of one API.

    `software` and `software_version` are those of ApiVersions 3 and later (KIP-511), and empty for clients
    that send none; those are distinguished by `client_id`, which is empty for all others.
    """

    software: str
    software_version: str
    client_id: str
    address: str
    """The address of the machine, without the port."""
    api: str
    version: int
    requests: int
    request_bytes: int
    response_bytes: int
    is_spoken: bool
    """Whether the broker that was connected last has this version: it needs no translation."""


class Counts:
    """What one kind of client has sent and got: requests and bytes, by `(api_key << 16) | version`."""

    __slots__ = ("by_code",)

    def __init__(self) -> None:
        self.by_code: dict[int, list[int]] = {}
        """Requests, their bytes, and the bytes of responses."""

    def asked(self, code: int, size: int) -> None:
        """Count a request."""
        counted = self.by_code.get(code)
        if counted is None:
            counted = self.by_code[code] = [0, 0, 0]
        counted[0] += 1
        counted[1] += size

    def answered(self, code: int, size: int) -> None:
        """Count the response to a request that was counted; a response to another one is not."""
        counted = self.by_code.get(code)
        if counted is not None:
            counted[2] += size


class Counters:
    """Counts by kind of client. Connections of one kind share a `Counts`."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str, str], Counts] = {}

    def of(self, software: str, version: str, client_id: str, peer: str) -> Counts:
        """The counts of a kind of client; `peer` is its address with the port, as ``host:port``."""
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
        """One row for each kind of client, API and version. May be called from any thread.

        `spoken` is what the cluster has, by API key.
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
