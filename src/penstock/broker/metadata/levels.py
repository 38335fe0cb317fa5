"""Feature levels of new clusters, such as `metadata.version`, by release of Kafka (KIP-584, KIP-778).

A data directory has one level, which determines the versions of its metadata records. A release of Apache
Kafka starts on directories up to its own level: 3.9 on level 21, 4.3 on level 30, 4.4 on level 33.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.broker.metadata.image import (
    GROUP_FEATURE,
    GROUP_VERSION,
    METADATA_FEATURE,
    METADATA_VERSION,
    SHARE_FEATURE,
    SHARE_VERSION,
    STREAMS_FEATURE,
    STREAMS_VERSION,
    TRANSACTION_FEATURE,
    TRANSACTION_VERSION,
)
from penstock.errors import ConfigError

LEVELS: Mapping[str, int] = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV2": 11,
    "3.6-IV2": 14,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV3": METADATA_VERSION,
    "4.1-IV1": 27,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
    "4.4-IV2": 33,
}
"""A dict from name (such as 3.9-IV0) to number for the last `metadata.version` level of each Kafka
release.
"""

OTHER_FEATURES_SINCE = 25
"""The level from which on new directories have the features `group.version` and `transaction.version`."""


SHARE_SINCE = 28
"""4.2-IV0: the level from which on new directories have the feature of share groups."""

DEAD_LETTERS_SINCE = 31
"""4.4-IV0: the level from which on share groups in new directories have dead letter queues."""

STREAMS_SINCE = 29
"""4.2-IV1: the level from which on new directories have the feature of streams groups."""


def level_of(name: str) -> int:
    """Return the `metadata.version` level for a release: ``3.9``, ``3.9.1`` or ``3.9-IV0``.

    Raises:
        ConfigError: the release does not exist.
    """
    found = LEVELS.get(name)
    release = ".".join(name.split(".")[:2])
    for known, level in LEVELS.items():
        if found is None and known.partition("-")[0] == release:
            found = level
    if found is None:
        raise ConfigError(
            f"{name!r} is no release whose directories can be written; name one of "
            f"{', '.join(known.partition('-')[0] for known in LEVELS)}"
        )
    return found


def features_at(level: int) -> dict[str, int]:
    """Return the levels of all features in a new directory with this `metadata.version` level."""
    found = {METADATA_FEATURE: level}
    if level >= OTHER_FEATURES_SINCE:
        found |= {TRANSACTION_FEATURE: TRANSACTION_VERSION, GROUP_FEATURE: GROUP_VERSION}
    if level >= SHARE_SINCE:
        found[SHARE_FEATURE] = SHARE_VERSION if level >= DEAD_LETTERS_SINCE else 1
    if level >= STREAMS_SINCE:
        found[STREAMS_FEATURE] = STREAMS_VERSION
    return found


def first_features(wanted: str | None, behaves_as: tuple[int, ...] | None) -> dict[str, int]:
    """Return the feature levels that a new directory gets.

    `wanted` is the setting `penstock.metadata.version`. If it is None, the level is that of the release as
    which the broker behaves, if that release has a level.

    Raises:
        ConfigError: `wanted` names no release.
    """
    if wanted is not None:
        return features_at(level_of(wanted))
    if behaves_as is not None:
        release = ".".join(map(str, behaves_as[:2]))
        for name, level in LEVELS.items():
            if name.partition("-")[0] == release:
                return features_at(min(level, METADATA_VERSION))
    return features_at(METADATA_VERSION)
