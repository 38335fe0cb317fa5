"""Messages as text trees: one line per value, coloured on a terminal with colours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import IO, Any

from penstock.explorer.conversation import ConversationEntry
from penstock.protocol.error_codes import ErrorCode

TEXT_MAX = 120
"""The maximum number of characters that are shown of a string."""

INLINE_MAX = 8
"""The maximum number of array elements, if they are numbers, that are shown on one line."""

_STYLES = {"name": "36", "text": "32", "number": "33", "title": "1", "dim": "2", "error": "31", "word": "35"}


def wants_colour(stream: IO[Any]) -> bool:
    """Return True if output to `stream` is coloured: a terminal that is not "dumb", and NO_COLOR is not set.

    See https://no-color.org.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Tree:
    """Formats `ConversationEntry` objects as text trees, with or without colours."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def entry(self, entry: ConversationEntry) -> Iterator[str]:
        """Yield the lines of one message: a title, then its header and fields."""
        yield self._title(entry)
        shown: dict[str, Any] = {}
        if entry.header is not None:
            shown["header"] = entry.header
        if entry.body is not None:
            shown |= _with_records(entry.body, {**entry.records, **entry.inside}, "")
        for path, tags in entry.unknown_tags.items():
            for tag, data in tags.items():
                shown[f"{path or entry.name} tag {tag}"] = data.hex()
        if entry.trailing:
            shown["trailing bytes"] = entry.trailing.hex()
        if entry.error is not None:
            shown["error"] = entry.error
            if entry.body is None and entry.frame:
                shown["bytes"] = entry.frame[: TEXT_MAX // 2].hex() + ("…" if len(entry.frame) > 60 else "")
        yield from self._members(shown, "")

    def _title(self, entry: ConversationEntry) -> str:
        words = []
        if entry.time is not None:
            moment = str(entry.as_json()["time"])
            words.append(self._paint("dim", moment[11:26]))
        if entry.name:
            words.append(self._paint("title", f"{entry.name} v{entry.version}"))
        else:
            words.append(self._paint("error", "not read"))
        if entry.elapsed_ms is not None:
            words.append(self._paint("dim", f"after {entry.elapsed_ms:.1f} ms"))
        if entry.connection is not None:
            words.append(self._paint("dim", entry.connection))
        arrow = "→" if entry.is_request else "←"
        return " ".join([arrow, *words] if entry.header is not None or entry.connection else words)

    def _members(self, value: dict[str, Any], indent: str) -> Iterator[str]:
        last = len(value) - 1
        for position, (name, each) in enumerate(value.items()):
            branch, below = ("└─ ", "   ") if position == last else ("├─ ", "│  ")
            title = self._paint("error" if name == "error" else "name", name)
            yield from self._value(title, name, each, indent + branch, indent + below)

    def _value(self, title: str, name: str, value: Any, first: str, rest: str) -> Iterator[str]:
        first = self._paint("dim", first)
        if isinstance(value, dict):
            yield f"{first}{title}{'' if value else ' {}'}"
            yield from self._members(value, rest)
        elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
            yield f"{first}{title} {self._paint('dim', f'({len(value)})')}"
            for position, each in enumerate(value):
                is_last = position == len(value) - 1
                branch, below = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
                number = self._paint("dim", f"[{position}]")
                yield from self._value(number, name, each, rest + branch, rest + below)
        elif isinstance(value, list):
            parts = [self._scalar(name, each) for each in value[:INLINE_MAX]]
            if len(value) > INLINE_MAX:
                parts.append(self._paint("dim", f"… {len(value)} in all"))
            yield f"{first}{title}: [{', '.join(parts)}]"
        else:
            yield f"{first}{title}: {self._scalar(name, value)}"

    def _scalar(self, name: str, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return self._paint("word", json.dumps(value))
        if isinstance(value, str):
            if name == "error":
                return self._paint("error", value if value.isprintable() else repr(value))
            cut = value if len(value) <= TEXT_MAX else value[:TEXT_MAX] + "…"
            # A name out of a capture must not steer the terminal.
            text = self._paint("text", json.dumps(cut, ensure_ascii=not cut.isprintable()))
            return text if cut == value else f"{text} {self._paint('dim', f'({len(value)} letters)')}"
        number = self._paint("number", str(value))
        if name.lower().endswith("errorcode") and isinstance(value, int):
            return f"{number} {self._paint('error' if value else 'dim', _error_name(value))}"
        if name == "requestApiKey" and isinstance(value, int):
            from penstock.protocol.api import API_TABLE

            return f"{number} {self._paint('dim', API_TABLE[value].name)}" if value in API_TABLE else number
        return number

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colour else text


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return "unknown"


def _with_records(value: Any, records: dict[str, Any], path: str) -> Any:
    """Return the JSON form with decoded batches, and decoded messages, instead of base64."""
    if path in records:
        return records[path]
    if not records:
        return value
    if isinstance(value, dict):
        return {
            name: _with_records(each, records, f"{path}.{name}".lstrip(".")) for name, each in value.items()
        }
    if isinstance(value, list):
        return [_with_records(each, records, f"{path}[{index}]") for index, each in enumerate(value)]
    return value
