"""What the groups of one coordinator are set up with, and what they ask to be done outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.groups.member import Tally, Ticket

if TYPE_CHECKING:
    from penstock.broker.groups.group import Group
    from penstock.protocol.message import Message


class GroupSettings(NamedTuple):
    """What the broker's settings say about groups."""

    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000


class Effects:
    """What has to happen outside: store these groups, then send these answers, in this order."""

    def __init__(self) -> None:
        self.saves: list[Group] = []
        self.replies: list[tuple[Ticket, Message]] = []
        self.unused: list[Group] = []
        """Groups that never had a generation and have no members any more."""
        self.given_away: dict[tuple[str, str], Group] = {}
        """Groups and the ids that were given away in them and not joined with, the oldest first."""
        self.tally = Tally()

    def take(self) -> tuple[list[Group], list[tuple[Ticket, Message]]]:
        """Hand everything over."""
        taken = self.saves, self.replies
        if self.saves or self.replies:
            self.saves, self.replies = [], []
        return taken
