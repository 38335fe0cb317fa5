"""A group's own settings, limited to the minimum and maximum that the broker sets for groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
"""The setting of a share group with the name of its dead letter topic (KIP-1191); empty for none."""

DEAD_LETTER_COPIES = "errors.deadletterqueue.copy.record.enable"
"""The setting of a share group that copies key and value of records into its dead letter topic."""


class NumericSettings(Protocol):
    """The interface through which `group_setting` reads the numeric settings of a broker."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""


def group_setting(own: Mapping[str, str], broker: NumericSettings, kind: str, name: str) -> int:
    """Return a numeric setting of a group: its own value within the broker's bounds, or the broker's value.

    `own` is a mapping from the names of the group's settings to their texts, `kind` is ``consumer``,
    ``share`` or ``streams``. The bounds may have changed since the group's own setting was checked.
    """
    text = own.get(f"{kind}.{name}")
    if text is None:
        return broker.integer(f"group.{kind}.{name}")
    least, most = (broker.integer(f"group.{kind}.{bound}.{name}") for bound in ("min", "max"))
    return min(max(int(text), least), most)
