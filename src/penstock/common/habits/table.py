"""The advice table: names that users of other Kafka clients type, and their equivalents in Penstock.

The files ``*.txt`` beside this module hold the table. A line ``[Producer]`` begins the section of that class,
a line ``[Producer.send]`` the section of that method's arguments; the name `*` has the advice for too many
arguments. In the advice, ``{await}``, ``{async}`` and ``{Async}`` are replaced by these words for asyncio's
classes, and by nothing for the blocking classes; ``{name}`` is replaced by what was typed.
"""

from __future__ import annotations

from functools import cache

ASYNC = "Async"
"""The prefix of classes for asyncio, which have no sections of their own."""

LIKE = {"KafkaBroker": "Broker", "KafkaCluster": "Cluster"}
"""The class that each of these classes extends: names that its own section lacks are looked up in the section
of the extended class."""

FILES = ("clients.txt", "options.txt", "commands.txt")


def advice(place: str, name: str) -> str | None:
    """Return what to type instead of `name`, or None if the table does not have `name`.

    `place` is the section: a class, ``Class.method``, or another section of the table. If a method's section
    lacks the name, the section ``arguments`` is searched, which applies to all methods.
    """
    is_async = place.startswith(ASYNC)
    section = place.removeprefix(ASYNC)
    known = table()
    kind, dot, method = section.partition(".")
    sections = [section] if kind not in LIKE else [section, f"{LIKE[kind]}{dot}{method}"]
    found = next((known[each][name] for each in sections if name in known.get(each, {})), None)
    if found is None and "." in section and name != "*":
        found = known["arguments"].get(name)
    if found is None:
        return None
    for mark, word in (("{await}", "await "), ("{async}", "async "), ("{Async}", ASYNC)):
        found = found.replace(mark, word if is_async else "")
    return found.replace("{name}", name)


@cache
def table() -> dict[str, dict[str, str]]:
    """Return all sections, each with its names and the advice about them."""
    from importlib.resources import files  # which imports tempfile, shutil and their like: only for a mistake

    found: dict[str, dict[str, str]] = {}
    for file in FILES:
        section: dict[str, str] = {}
        for line in (files(__package__) / file).read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                section = found.setdefault(line[1:-1], {})
            elif line and not line.startswith("#"):
                names, _, said = line.partition(": ")
                section.update(dict.fromkeys(names.split(", "), said))
    return found
