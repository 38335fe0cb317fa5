"""Eligible leader replicas (KIP-966): replicas with all committed records that are not in sync.

While fewer than `min.insync.replicas` replicas are in sync, no further record is committed. So a replica that
was in sync before that, and has not lost records since, may lead. The module does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import ALL_BROKERS, ELR_FEATURE
from penstock.protocol.field_values import BROKER_RESOURCE
from penstock.protocol.messages.clear_elr_record import ClearElrRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord

if TYPE_CHECKING:
    from penstock.broker.metadata.image import ClusterImage, Replicas
    from penstock.protocol.message import Message

MINIMUM = "min.insync.replicas"


class Eligibility:
    """Computes the eligible leader replicas. `minimum_default` returns the static `min.insync.replicas`."""

    def __init__(self, image: ClusterImage, minimum_default: Callable[[], int]) -> None:
        self._image = image
        self._minimum_default = minimum_default

    @property
    def is_on(self) -> bool:
        """True if the cluster uses eligible leader replicas (KIP-966)."""
        return self._image.features.get(ELR_FEATURE, 0) > 0

    def _minimum(self, topic: str, replicas: int) -> int:
        """Return the `min.insync.replicas` of a topic, limited to the number of replicas."""
        text = self._image.topics[topic].overrides.get(MINIMUM)
        if text is None:
            text = self._image.broker_configs.get(ALL_BROKERS, {}).get(MINIMUM)
        return min(self._minimum_default() if text is None else int(text), replicas)

    def of(
        self, topic: str, before: Replicas, assigned: Sequence[int], isr: Sequence[int], unsure: int | None
    ) -> tuple[int, ...]:
        """Return the replicas that may lead without being in sync, after the ISR has become `isr`."""
        if not self.is_on or len(isr) >= self._minimum(topic, len(assigned)):
            return ()
        candidates = {*before.eligible, *before.in_sync} & set(assigned)
        return tuple(sorted(candidates - {*isr, unsure}))

    def consequences(self, records: Sequence[Message]) -> list[Message]:
        """Return the records about eligible leader replicas that have to be written together with `records`.

        When `records` switch the feature on, `min.insync.replicas` becomes one setting for all brokers. When
        they change `min.insync.replicas`, the eligible leader replicas are cleared.
        """
        if not self.is_on:
            begins = any(
                isinstance(record, FeatureLevelRecord) and record.name == ELR_FEATURE and record.feature_level
                for record in records
            )
            return self._one_minimum() if begins else []
        names = {
            record.resource_name: None
            for record in records
            if isinstance(record, ConfigRecord) and record.name == MINIMUM
        }
        return [ClearElrRecord(topic_name=name) for name in names]

    def _one_minimum(self) -> list[Message]:
        records: list[Message] = []
        for name, texts in {ALL_BROKERS: {}, **self._image.broker_configs}.items():
            if (MINIMUM in texts) == (name == ALL_BROKERS):
                continue
            value = None if name else str(self._minimum_default())
            records.append(
                ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MINIMUM, value=value)
            )
        return records
