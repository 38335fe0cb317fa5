"""Tables of state transitions, and the error for a state and an event that a table has no row for."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class IllegalTransitionError(RuntimeError):
    """A transition table has no row for an event in a state: a bug in this program, not in a peer."""

    def __init__(self, state: StrEnum, event: StrEnum) -> None:
        super().__init__(
            f"TRANSITIONS has no row ({state.name}, {event.name}): {event.value}, while {state.value}"
        )
        self.state = state
        self.event = event


class Transitions(dict[tuple[S, E], S]):
    """A table from a state and an event to the next state. A pair that is not listed is illegal."""

    def next_state(self, state: S, event: E) -> S:
        """Return the state that `event` leads to from `state`.

        Raises:
            IllegalTransitionError: there is no row for the pair.
        """
        try:
            return self[state, event]
        except KeyError:
            raise IllegalTransitionError(state, event) from None
