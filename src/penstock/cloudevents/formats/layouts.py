"""Layouts of JSON envelopes: most programs write their events with the same members in the same order.

The layouts of the first envelopes read are stored as regular expressions, each of which splits an envelope in
one step. A pattern fits envelopes whose members are texts without escapes, with the data, if any, at the end;
all other envelopes, and invalid events, are read member by member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.cloudevents.grammar import COMMON_TIMESTAMP
from penstock.cloudevents.types import is_attribute_name

LAYOUTS_MAX = 8
"""The most layouts that are stored. Envelopes with further layouts are read member by member."""

MEMBERS_MAX = 24
NAME_CHARACTERS_MAX = 64

_FIELDS = ("id", "source", "type", "datacontenttype", "subject", "time", "dataschema", "data_base64")
_KNOWN = frozenset((*_FIELDS, "specversion", "data"))
# Characters that JSON requires to be escaped get through here; the rules of every attribute refuse them.
_VALUE = '"([^"]*+)"'


class EnvelopeLayout:
    """The order of the members in an envelope, and a regular expression that splits such envelopes.

    `match` applies the pattern. `fields` are the numbers of the pattern's groups for id, source, type,
    datacontenttype, subject, time, dataschema and data_base64, in this order (a missing field has the number
    of the last group, which never matches); `extensions` are the names and group numbers of the extensions.
    With `has_data`, the match ends where the data begin.
    """

    __slots__ = ("extensions", "fields", "has_data", "match", "names")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.has_data = names[-1] == "data"
        groups = [name for name in names if name not in ("specversion", "data")]
        members = [_member(name) for name in names if name != "data"]
        ending = ', ?"data": ?()??' if self.has_data else r"\}\Z()??"
        self.match = re.compile(r"\{" + ", ?".join(members) + ending).match
        places = {name: place for place, name in enumerate(groups, 1)}
        self.fields = tuple(places.get(name, len(groups) + 1) for name in _FIELDS)
        self.extensions = [(name, places[name]) for name in groups if name not in _KNOWN]


def _member(name: str) -> str:
    if name == "specversion":
        return '"specversion": ?"1\\.0"'
    return f'"{name}": ?"({COMMON_TIMESTAMP})"' if name == "time" else f'"{name}": ?{_VALUE}'


class Layouts:
    """The layouts of envelopes read so far.

    The tuple of layouts is replaced, never changed, so that threads can share it."""

    __slots__ = ("learnt",)

    def __init__(self) -> None:
        self.learnt: tuple[EnvelopeLayout, ...] = ()

    def prefer(self, layout: EnvelopeLayout) -> None:
        """Move a layout to the front, since the next event is probably from the same program."""
        if layout is not self.learnt[0]:
            self.learnt = (layout, *(other for other in self.learnt if other is not layout))

    def learn(self, members: Mapping[str, object]) -> None:
        """Store the layout of a valid event's envelope, if a pattern can match it."""
        names = tuple(members)
        if len(self.learnt) >= LAYOUTS_MAX or len(names) > MEMBERS_MAX:
            return
        if any(layout.names == names for layout in self.learnt):
            return
        for name, value in members.items():
            if name == names[-1] == "data":
                continue
            if name == "data" or not isinstance(value, str) or len(name) > NAME_CHARACTERS_MAX:
                return
            if name not in _KNOWN and not is_attribute_name(name):
                return
        self.learnt = (*self.learnt, EnvelopeLayout(names))
