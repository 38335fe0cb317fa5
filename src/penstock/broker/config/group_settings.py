"""A group's own settings, limited to the minimum and maximum that the broker sets for groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
"""The name of the share group setting that chooses the group's dead letter topic (KIP-1191). An empty
value means no topic.
"""

DEAD_LETTER_COPIES = "errors.deadletterqueue.copy.record.enable"
"""The name of the share group setting with which key and value of records are copied into the dead
letter topic.
"""


class NumericSettings(Protocol):
    """The interface through which `group_setting` reads the numeric settings of a broker."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""


def group_setting(own: Mapping[str, str], broker: NumericSettings, kind: str, name: str) -> int:
    """Return a group's numeric setting: its own value limited by the broker's bounds, else the broker's.

    `own` is a mapping from the names of the group's settings to their texts, `kind` is ``consumer``,
    ``share`` or ``streams``. The bounds may have changed since the group's own setting was checked.
    """
    text = own.get(f"{kind}.{name}")
    if text is None:
        return broker.integer(f"group.{kind}.{name}")
    least, most = (broker.integer(f"group.{kind}.{bound}.{name}") for bound in ("min", "max"))
    return min(max(int(text), least), most)
