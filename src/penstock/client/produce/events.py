"""Makes the record that carries a CloudEvent for `send(event=...)`, in the given mode, with the given key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError
from penstock.headers import Header

if TYPE_CHECKING:
    from penstock.cloudevents.formats.registry import FormatName
    from penstock.cloudevents.headers import Mode
    from penstock.cloudevents.write_record import KeyMapper


def record_of(
    event: object,
    value: object,
    key: Any,
    headers: Sequence[Any],
    mode: Mode,
    key_mapper: KeyMapper | None,
    event_format: FormatName,
) -> tuple[Any, Any, Sequence[Header]]:
    """Return key, value and headers of the record that carries `event`.

    `penstock.cloudevents.to_record` converts the event.

    Raises:
        ConfigError: `value` is given as well, or `event` is not a CloudEvent.
        EncodeError, InvalidEventError: no record of this mode can carry the event.
    """
    from penstock.cloudevents import Event, to_record

    if not isinstance(event, Event):
        raise ConfigError(
            f"event= takes a penstock.cloudevents.Event, not {type(event).__name__}; "
            "from_sdk makes one of the official SDK's"
        )
    if value is not None:
        raise ConfigError("give either a value or an event, not both: the event makes the value")
    return to_record(
        event, mode=mode, key=key, key_mapper=key_mapper, event_format=event_format, headers=headers
    )
