"""A share group's settings for partition leaders: the group's own values, limited by broker settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.broker.config.group_settings import (
    DEAD_LETTER_COPIES,
    DEAD_LETTER_TOPIC,
    NumericSettings,
    group_setting,
)

LATEST, EARLIEST = "latest", "earliest"

BY_DURATION = "by_duration:"

_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)


class SharingSettings(NamedTuple):
    """The settings of a share group: its own, or else the broker's. The defaults are Apache Kafka's."""

    lock_duration_ms: int = 30_000
    """`share.record.lock.duration.ms`: the time after which a record's lock expires unless it is renewed."""
    delivery_count_limit: int = 5
    """`share.delivery.count.limit`: the maximum number of deliveries of a record."""
    max_record_locks: int = 2000
    """`share.partition.max.record.locks`: the maximum number of a partition's offsets in flight."""
    offset_reset: str = LATEST
    """`share.auto.offset.reset`: ``latest``, ``earliest``, or ``by_duration:`` with an ISO 8601 duration."""
    committed_only: bool = False
    """True if `share.isolation.level` is read_committed."""
    renews: bool = True
    """`share.renew.acknowledge.enable`: True if members may renew locks."""
    dead_letter_topic: str = ""
    """`errors.deadletterqueue.topic.name`; empty if there is none, or the cluster has no dead letters."""
    copies_records: bool = False
    """`errors.deadletterqueue.copy.record.enable`: True if dead letters have key and value of the record."""


def settings_of(
    own: Mapping[str, str], broker: NumericSettings, *, has_dead_letters: bool = False
) -> SharingSettings:
    """Return the settings of a share group; `own` has the values of its own settings, as text.

    `has_dead_letters` is True if the cluster has dead letters (KIP-1191).
    A value outside of the broker's bounds, which may have changed since, is replaced by the nearest bound.
    """
    return SharingSettings(
        group_setting(own, broker, "share", "record.lock.duration.ms"),
        group_setting(own, broker, "share", "delivery.count.limit"),
        group_setting(own, broker, "share", "partition.max.record.locks"),
        own.get("share.auto.offset.reset", LATEST),
        own.get("share.isolation.level") == "read_committed",
        own.get("share.renew.acknowledge.enable", "true").strip().lower() == "true",
        own.get(DEAD_LETTER_TOPIC, "").strip() if has_dead_letters else "",
        own.get(DEAD_LETTER_COPIES, "false").strip().lower() == "true",
    )


def duration_ms(reset: str) -> int | None:
    """Return the ms of a `share.auto.offset.reset` such as ``by_duration:P1D``; None for other values."""
    if not reset.startswith(BY_DURATION):
        return None
    match = _DURATION.fullmatch(reset[len(BY_DURATION) :])
    if match is None:
        return None
    days, hours, minutes, seconds = (int(match[index] or 0) for index in range(1, 5))
    thousandths = int(((match[5] or "") + "000")[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + thousandths
