"""The registered brokers in the metadata of a cluster: endpoints, racks, epochs, and which are fenced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord
from penstock.protocol.messages.unregister_broker_record import UnregisterBrokerRecord

if TYPE_CHECKING:
    from penstock.protocol.message import Message


class BrokerState:
    """One registered broker. `endpoints` maps listener names to host and port."""

    __slots__ = ("endpoints", "epoch", "fenced", "id", "rack", "shutting_down")

    def __init__(self, record: RegisterBrokerRecord) -> None:
        self.id = record.broker_id
        self.epoch = record.broker_epoch
        """The broker epoch, which is new with each registration."""
        self.rack = record.rack
        self.endpoints = {each.name: (each.host, each.port) for each in record.end_points}
        self.fenced = record.fenced
        """True while the broker leads no partition, is in no ISR, and is missing in Metadata responses."""
        self.shutting_down = record.in_controlled_shutdown

    @property
    def is_acceptable(self) -> bool:
        """True if the broker may lead partitions and be in the ISR."""
        return not (self.fenced or self.shutting_down)


class BrokerStates:
    """All registered brokers by id. Only `apply` changes them."""

    def __init__(self) -> None:
        self.by_id: dict[int, BrokerState] = {}

    def apply(self, record: Message) -> bool:
        """Apply a metadata record; return True if it concerns a broker, False if it was ignored."""
        if isinstance(record, RegisterBrokerRecord):
            self.by_id[record.broker_id] = BrokerState(record)
            return True
        if isinstance(record, UnregisterBrokerRecord):
            found = self.by_id.get(record.broker_id)
            if found is not None and found.epoch == record.broker_epoch:
                del self.by_id[record.broker_id]
            return True
        if isinstance(record, BrokerRegistrationChangeRecord):
            found = self.by_id.get(record.broker_id)
            if found is not None and found.epoch == record.broker_epoch:
                if record.fenced:
                    found.fenced = record.fenced > 0
                if record.in_controlled_shutdown:
                    found.shutting_down = record.in_controlled_shutdown > 0
            return True
        return False

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
