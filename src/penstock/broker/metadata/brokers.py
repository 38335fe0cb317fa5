"""The registered brokers in the metadata of a cluster: endpoints, racks, epochs, and which are fenced."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from penstock.broker.metadata.metadata_log import CORDONED_SINCE

if TYPE_CHECKING:
    from penstock.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
    from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord

REGISTRATIONS = frozenset((0, 1, 7, 8, 17))
"""The types of the metadata records that change registrations of brokers."""


class BrokerState:
    """One registered broker. `endpoints` maps listener names to host and port."""

    __slots__ = (
        "_record",
        "cordoned",
        "directories",
        "endpoints",
        "epoch",
        "fenced",
        "id",
        "rack",
        "shutting_down",
    )

    def __init__(self, record: RegisterBrokerRecord) -> None:
        self._record = record
        self.id = record.broker_id
        self.epoch = record.broker_epoch
        """The broker epoch, which is new with each registration."""
        self.rack = record.rack
        self.endpoints = {each.name: (each.host, each.port) for each in record.end_points}
        self.fenced = record.fenced
        """True while the broker leads no partition, is in no ISR, and is missing in Metadata responses."""
        self.shutting_down = record.in_controlled_shutdown
        self.directories = record.log_dirs
        self.cordoned = record.cordoned_log_dirs

    @property
    def is_acceptable(self) -> bool:
        """True if the broker may lead partitions and be in the ISR."""
        return not (self.fenced or self.shutting_down)

    def record(self, level: int) -> RegisterBrokerRecord:
        """Return a metadata record of the present registration, for a `metadata.version` level."""
        record = copy(self._record)
        record.fenced, record.in_controlled_shutdown = self.fenced, self.shutting_down
        record.log_dirs = self.directories
        record.cordoned_log_dirs = self.cordoned if level >= CORDONED_SINCE else None
        return record


class BrokerStates:
    """All registered brokers by id. Only `ClusterImage.apply` changes them."""

    def __init__(self) -> None:
        self.by_id: dict[int, BrokerState] = {}

    def register(self, record: RegisterBrokerRecord) -> None:
        """Add a broker's registration, or replace an earlier one."""
        self.by_id[record.broker_id] = BrokerState(record)

    def unregister(self, broker: int, epoch: int) -> None:
        """Remove a broker, if it is registered with this broker epoch."""
        if self._of(broker, epoch) is not None:
            del self.by_id[broker]

    def fence(self, broker: int, epoch: int, *, fenced: bool) -> None:
        """Fence or unfence a broker, if it is registered with this broker epoch."""
        found = self._of(broker, epoch)
        if found is not None:
            found.fenced = fenced

    def change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Apply a change record to a broker's registration if the registration has the record's epoch."""
        found = self._of(record.broker_id, record.broker_epoch)
        if found is None:
            return
        if record.fenced:
            found.fenced = record.fenced > 0
        if record.in_controlled_shutdown:
            found.shutting_down = record.in_controlled_shutdown > 0
        if record.log_dirs:
            found.directories = record.log_dirs
        if record.cordoned_log_dirs is not None:
            found.cordoned = record.cordoned_log_dirs

    def _of(self, broker: int, epoch: int) -> BrokerState | None:
        found = self.by_id.get(broker)
        return found if found is not None and found.epoch == epoch else None

    def epoch_of(self, broker: int) -> int:
        """Return the epoch of a broker's registration, or -1 if it is not registered."""
        found = self.by_id.get(broker)
        return -1 if found is None else found.epoch

    def is_acceptable(self, broker: int) -> bool:
        """Return True if a registered broker may lead partitions and be in the ISR."""
        found = self.by_id.get(broker)
        return found is not None and found.is_acceptable

    def is_alive(self, broker: int) -> bool:
        """Return True if a broker is registered and not fenced."""
        found = self.by_id.get(broker)
        return found is not None and not found.fenced

    def living(self) -> list[BrokerState]:
        """Return the brokers that are not fenced, in order of their ids."""
        return [self.by_id[key] for key in sorted(self.by_id) if not self.by_id[key].fenced]
