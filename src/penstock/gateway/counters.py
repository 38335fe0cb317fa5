"""Which clients a gateway has met: requests by client software, API and version."""

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
    api: str
    version: int
    requests: int
    is_spoken: bool
    """Whether the broker that was connected last has this version: it needs no translation."""


class Counters:
    """Counts by kind of client. What a connection counts in is a plain dictionary, by API and version."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], dict[int, int]] = {}

    def of(self, software: str, version: str, client_id: str) -> dict[int, int]:
        """The counts of a kind of client, by `(api_key << 16) | version`."""
        kind = (
            software[:NAME_CHARACTERS_MAX],
            version[:NAME_CHARACTERS_MAX],
            client_id[:NAME_CHARACTERS_MAX],
        )
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) >= CLIENTS_MAX:
                kind = (*OTHERS, "")
            found = self._kinds.setdefault(kind, {})
        return found

    def rows(self, spoken: Mapping[int, tuple[int, int]]) -> list[ClientCount]:
        """One row for each kind of client, API and version. May be called from any thread.

        `spoken` is what the cluster has, by API key.
        """
        found = []
        for (software, version, client_id), counts in list(self._kinds.items()):
            for code, requests in list(counts.items()):
                api = API_TABLE.get(code >> 16)
                name = api.name if api is not None else str(code >> 16)
                low, high = spoken.get(code >> 16, (0, -1))
                at = code & 0xFFFF
                found.append(ClientCount(software, version, client_id, name, at, requests, low <= at <= high))
        return sorted(found)
