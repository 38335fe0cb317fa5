"""Releases of Apache Kafka, 0.8.0 to trunk: the request versions that each parses, and those it offers.

The data are in ``releases.txt``, beside this module. Brokers that imitate an older release for tests, and
tests against old brokers, use these data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.protocol.api import API_TABLE

TRUNK = "trunk"
FIRST_KRAFT = (3, 3)
"""The first release whose brokers run without ZooKeeper by default, as `Release.api_versions` assumes."""
LAST_ZOOKEEPER = (3, 9)

_ANY = 999
"""A number larger than any number in the name of a release. It replaces the ``x`` in a version such as
``4.x``.
"""

_NUMBERS = re.compile(r"\d+(\.\d+)*")
_ENTRY = re.compile(r"(\w+) (?:removed|(\d+)-(\d+)((?: [\w:-]+)*))")


class ApiRange(NamedTuple):
    """The versions of one API in one release: those that brokers can parse, and those in ApiVersions."""

    lowest: int
    highest: int
    is_latest_unstable: bool = False
    """True if the highest version is offered only if unstable versions are enabled."""
    offered: tuple[int, int] | None = None
    """The versions in the ApiVersions response, if these differ from `lowest` and `highest`, else None."""
    where: str = ""
    """The nodes that offer the API: empty for every broker, else ``zookeeper``, ``kraft`` or
    ``controller``."""
    needs_receiver: bool = False
    """True if the API is offered only if a receiver of client metrics is configured."""


class Release(NamedTuple):
    """A release of Apache Kafka, named by its feature version: ``0.10.2``, ``2.8``, ``trunk``."""

    name: str
    apis: Mapping[int, ApiRange]
    """The APIs that the release has, by API key."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The release's name as numbers, for comparisons; trunk is above all other releases."""
        return _numbers(self.name)

    def api_versions(
        self, *, unstable: bool = False, kraft: bool | None = None, receiver: bool = False
    ) -> dict[int, tuple[int, int]]:
        """Return the APIs that a broker of this release offers to clients: key to lowest and highest version.

        For releases before 0.10, which lack ApiVersions, these are the versions that a client may send.

        Args:
            unstable: True if unstable versions are enabled (``unstable.api.versions.enable``).
            kraft: True if the broker runs without ZooKeeper; by default True from release 3.3 on.
            receiver: True if a receiver of client metrics is configured. Without one, brokers do not offer
                the requests for metrics.

        Raises:
            ConfigError: brokers of this release cannot run with ZooKeeper, or cannot run without it.
        """
        without_zookeeper = self.numbers >= FIRST_KRAFT if kraft is None else kraft
        if without_zookeeper and self.numbers < (2, 8):
            raise ConfigError(f"Kafka {self.name} needs ZooKeeper: KRaft came with 2.8")
        if not without_zookeeper and self.numbers > LAST_ZOOKEEPER:
            raise ConfigError(f"Kafka {self.name} has no ZooKeeper: 3.9 was the last that had")
        hidden = {"controller", "zookeeper" if without_zookeeper else "kraft"}
        found = {}
        for key, one in self.apis.items():
            low, high = one.offered or (one.lowest, one.highest)
            high -= one.is_latest_unstable and not unstable
            if low <= high and one.where not in hidden and (receiver or not one.needs_receiver):
                found[key] = (low, high)
        return found


def _numbers(name: str) -> tuple[int, ...]:
    return (1 << 30,) if name == TRUNK else tuple(map(int, name.split(".")))


def _read(lines: Iterable[str]) -> dict[str, Release]:
    keys = {api.name: api.key for api in API_TABLE.values()}
    releases: dict[str, Release] = {}
    apis: dict[int, ApiRange] = {}
    for line in map(str.strip, lines):
        if line.startswith("["):
            apis = dict(apis)
            releases[line[1:-1]] = Release(line[1:-1], apis)
        elif line and not line.startswith("#"):
            match = _ENTRY.fullmatch(line)
            if match is None:
                raise ConfigError(f"releases.txt: {line!r} is no entry")
            name, low, high, words = match.groups()
            if low is None:
                del apis[keys[name]]
            else:
                apis[keys[name]] = _api_range(int(low), int(high), words.split())
    return releases


def _api_range(low: int, high: int, words: list[str]) -> ApiRange:
    offered = next((word.removeprefix("offered:") for word in words if word.startswith("offered:")), "")
    first, _, last = offered.partition("-")
    return ApiRange(
        low,
        high,
        "unstable" in words,
        (int(first), int(last)) if offered else None,
        next((word for word in words if word in ("zookeeper", "kraft", "controller")), ""),
        "receiver" in words,
    )


def _load() -> dict[str, Release]:
    with open(os.path.join(os.path.dirname(__file__), "releases.txt"), encoding="ascii") as file:
        return _read(file)


RELEASES: Mapping[str, Release] = _load()
"""Every release by name, oldest first."""


def release(version: str) -> Release:
    """Return the release that a version belongs to: ``2.8.2`` is of 2.8, ``0.10.2.1`` of 0.10.2.

    A version between two known releases, such as ``0.8.3``, or after the last one, belongs to the release
    before it. ``4.x`` is the last release that begins with 4.

    Raises:
        ConfigError: `version` is no version, or older than 0.8.0.
    """
    if version == TRUNK:
        return RELEASES[TRUNK]
    if not _NUMBERS.fullmatch(version.removesuffix(".x")):
        raise ConfigError(f"{version!r} is no release of Kafka: name one as 2.8, 0.10.2 or {TRUNK}")
    numbers = _numbers(version.replace(".x", f".{_ANY}"))
    padded = numbers + (0,) * (3 - len(numbers))
    older = [each for each in RELEASES.values() if each.name != TRUNK and each.numbers <= padded]
    if not older:
        raise ConfigError(f"Kafka {version} is too old: 0.8.0 is the first release with this protocol")
    return older[-1]


def api_versions(
    version: str, *, unstable: bool = False, kraft: bool | None = None
) -> dict[int, tuple[int, int]]:
    """Return the APIs that brokers of a release offer to clients; see `Release.api_versions` and `release`.

    Raises:
        ConfigError: there is no such release, or it cannot run with (or without) ZooKeeper.
    """
    return release(version).api_versions(unstable=unstable, kraft=kraft)
