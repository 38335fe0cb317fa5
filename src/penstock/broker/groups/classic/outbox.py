"""The output of the groups of one coordinator: groups to store, responses to send, ids to withdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.broker.groups.classic.member import Tally, Ticket

if TYPE_CHECKING:
    from penstock.protocol.message import Message

G = TypeVar("G")
"""The type of the groups that are stored, and that assign member ids."""


class GroupOutbox(Generic[G]):
    """Collects the output of groups: the caller stores the groups first, then sends the responses, in order.

    Groups append to it; the service that does the I/O takes from it.
    """

    def __init__(self) -> None:
        self.saves: list[G] = []
        self.replies: list[tuple[Ticket, Message]] = []
        self.unused: list[G] = []
        """Groups without members that have never had a generation."""
        self.given_away: dict[tuple[str, str], G] = {}
        """The group of every member id that was assigned (MEMBER_ID_REQUIRED) and has not joined yet, by
        (group id, member id), the oldest first."""
        self.tally = Tally()

    def take(self) -> tuple[list[G], list[tuple[Ticket, Message]]]:
        """Return and remove the groups to be stored and the responses to be sent."""
        taken = self.saves, self.replies
        if self.saves or self.replies:
            self.saves, self.replies = [], []
        return taken
