"""Tests of the compatibility check for changed message definitions, with a table of changes and verdicts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from for_each import for_each
from penstock.protocol.inspect.evolution import compare, is_compatible
from penstock.protocol.schema.loader import load_definition
from penstock.protocol.schema.parser import parse_definition
from protocol import catalogue

Source = dict[str, Any]

LAMP: Source = {
    "apiKey": 900,
    "name": "LampRequest",
    "type": "request",
    "listeners": ["broker"],
    "validVersions": "0-2",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "LampId", "type": "uuid", "versions": "0+"},
        {"name": "Watts", "type": "int32", "versions": "0+", "default": "40"},
        {"name": "Colour", "type": "string", "versions": "1+", "nullableVersions": "1+", "ignorable": True},
        {"name": "Hours", "type": "[]Hour", "versions": "0+", "fields": [
            {"name": "Start", "type": "int64", "versions": "0+", "mapKey": True},
            {"name": "Note", "type": "string", "versions": "2+", "tag": 0, "taggedVersions": "2+"},
        ]},
        {"name": "Hue", "type": "int16", "versions": "2+", "tag": 0, "taggedVersions": "2+", "default": "7"},
        {"name": "Place", "type": "Place", "versions": "2+", "tag": 1, "taggedVersions": "2+", "fields": [
            {"name": "Room", "type": "int32", "versions": "2+", "entityType": "brokerId"},
        ]},
    ],
}  # fmt: skip


def judged(change: Callable[[Source], object], before: Callable[[Source], object] | None = None) -> list[str]:
    old, new = copy.deepcopy(LAMP), copy.deepcopy(LAMP)
    if before is not None:
        before(old)
        before(new)
    change(new)
    findings = compare(parse_definition(old, "old"), parse_definition(new, "new"))
    return [f"{'breaks' if finding.breaks else 'note'}: {finding}" for finding in findings]


def field(source: Source, *path: str) -> Source:
    fields = source["fields"]
    for name in path:
        found: Source = next(each for each in fields if each["name"] == name)
        fields = found.get("fields", [])
    return found


def drop(source: Source, name: str) -> None:
    source["fields"] = [each for each in source["fields"] if each["name"] != name]


def add(source: Source, **spec: Any) -> None:
    source["fields"].append(spec)


def retag(source: Source, name: str, tag: int) -> None:
    field(source, name)["tag"] = tag


def swap(source: Source) -> None:
    source["fields"][:2] = reversed(source["fields"][:2])


BREAKS = [
    (
        lambda d: field(d, "Watts").update(name="Power"),
        ".Watts: was renamed Power: the bytes stay, JSON and classes do not (versions 0-2)",
    ),
    (lambda d: d.update(name="LightRequest"), ": name was LampRequest and is LightRequest"),
    (lambda d: d.update(apiKey=901), ": apiKey was 900 and is 901"),
    (
        lambda d: d.update(validVersions="0-1"),
        ": validVersions shrank: peers may speak what is gone (version 2)",
    ),
    (
        lambda d: d.update(validVersions="1-2"),
        ": validVersions shrank: peers may speak what is gone (version 0)",
    ),
    (
        lambda d: d.update(latestVersionUnstable=True),
        ": latestVersionUnstable marks what has been released (version 2)",
    ),
    (lambda d: d.update(flexibleVersions="0+"), ": flexibleVersions were 1+ and are 0+ (version 0)"),
    (lambda d: drop(d, "Watts"), ".Watts: was removed from a version that has it (versions 0-2)"),
    (lambda d: drop(d, "Place"), ".Place: tagged field 1 was removed (version 2)"),
    (
        lambda d: field(d, "Watts").update(versions="0-1"),
        ".Watts: was removed from a version that has it (version 2)",
    ),
    (
        lambda d: field(d, "Colour").update(versions="0+"),
        ".Colour: is new in a version that was there before (version 0)",
    ),
    (
        lambda d: add(d, name="Dim", type="bool", versions="2+"),
        ".Dim: is new in a version that was there before (version 2)",
    ),
    (
        lambda d: add(d, name="Dim", type="bool", versions="0+", tag=2, taggedVersions="2+"),
        ".Dim: is new in a version that was there before (versions 0-1)",
    ),
    (lambda d: field(d, "Watts").update(type="int64"), ".Watts: type was INT32 and is INT64 (versions 0-2)"),
    (
        lambda d: field(d, "Watts").update(type={"0-1": "int32", "2+": "int64"}),
        ".Watts: type was INT32 and is INT64 (version 2)",
    ),
    (
        lambda d: field(d, "Watts").update(encoding={"0-1": "fixed32", "2+": "signed32"}),
        ".Watts: type was INT32 and is VARINT32 (version 2)",
    ),
    (
        lambda d: field(d, "Watts").update(type="[]int32", default=""),
        ".Watts: type was INT32 and is [INT32] (versions 0-2)",
    ),
    (
        lambda d: field(d, "Colour").pop("nullableVersions"),
        ".Colour: type was COMPACT_NULLABLE_STRING and is COMPACT_STRING (versions 1-2)",
    ),
    (
        lambda d: field(d, "Hours").update(nullableVersions="2+"),
        ".Hours: type was [Hour] and is NULLABLE [Hour] (version 2)",
    ),
    (
        lambda d: field(d, "Hours", "Start").update(type="int32"),
        ".Hours.Start: type was INT64 and is INT32 (versions 0-2)",
    ),
    (
        lambda d: field(d, "Place", "Room").update(type="int64", entityType="producerId"),
        ".Place.Room: type was INT32 and is INT64 (version 2)",
    ),
    (swap, ": the order of the fields changed (versions 0-2)"),
    (
        lambda d: (
            retag(d, "Hue", 2) or add(d, name="Low", type="int16", versions="2+", tag=0, taggedVersions="2+")
        ),
        ".Hue: tag 0 is used again, for Low (version 2)",
    ),
    (lambda d: field(d, "Hue").update(type="int32"), ".Hue: type was INT16 and is INT32 (version 2)"),
    (lambda d: field(d, "Hue").update(default="8"), ".Hue: default was 7 and is 8"),
    (lambda d: field(d, "Colour").update(default="red"), ".Colour: default was '' and is 'red'"),
    (
        lambda d: field(d, "Place").pop("tag") and field(d, "Place").pop("taggedVersions"),
        ".Place: is no longer tagged, and was (version 2)",
    ),
    (
        lambda d: field(d, "Colour").update(tag=2, taggedVersions="1+"),
        ".Colour: is tagged now, and was not (versions 1-2)",
    ),
]


@for_each(BREAKS)
def test_what_breaks(change: Callable[[Source], object], complaint: str) -> None:
    assert f"breaks: LampRequest{complaint}" in judged(change)


def test_tags_that_change_places() -> None:
    found = judged(lambda d: retag(d, "Hue", 1) or retag(d, "Place", 0))
    assert len(found) == 2
    assert all("is used again" in finding for finding in found)


FINE = [
    lambda d: None,
    lambda d: d.update(validVersions="0-3"),
    lambda d: d.update(validVersions="0-3") or add(d, name="Dim", type="bool", versions="3+"),
    lambda d: d.update(validVersions="0-3") or field(d, "Watts").update(versions="0-2"),
    lambda d: d.update(validVersions="0-3") or field(d, "Colour").update(nullableVersions="1-2"),
    lambda d: d.update(validVersions="0-3") or field(d, "Watts").update(type={"0-2": "int32", "3+": "int64"}),
    lambda d: d.update(validVersions="0-3", latestVersionUnstable=True),
    lambda d: add(d, name="Dim", type="bool", versions="2+", tag=2, taggedVersions="2+"),
    lambda d: add(d, name="Dim", type="bool", versions="1+", tag=2, taggedVersions="1+"),
    lambda d: field(d, "Hours").update(type="[]Time"),
    lambda d: field(d, "Watts").update(about="power"),
    lambda d: field(d, "Watts").update(ignorable=True),
]


@for_each(FINE)
def test_what_is_fine(change: Callable[[Source], object]) -> None:
    assert judged(change) == []


NOTES = [
    (lambda d: field(d, "Colour").update(ignorable=False), "is no longer ignorable"),
    (lambda d: field(d, "Hours", "Start").update(mapKey=False), "is no longer a key"),
    (
        lambda d: d.update(listeners=["broker", "controller"]),
        "listeners were broker and are broker, controller",
    ),
    (lambda d: field(d, "Watts").update(default="60"), "default was 40 and is 60"),
]


@pytest.mark.parametrize(("change", "words"), NOTES)
def test_what_is_worth_a_note(change: Callable[[Source], object], words: str) -> None:
    (finding,) = judged(change)
    assert finding.startswith("note: ")
    assert words in finding


def test_an_unstable_version_may_change() -> None:
    unstable = lambda d: d.update(latestVersionUnstable=True)  # noqa: E731
    assert judged(lambda d: field(d, "Watts").update(versions="0-1"), unstable) == []
    assert judged(lambda d: d.update(validVersions="0-1", latestVersionUnstable=False), unstable) == []
    assert judged(lambda d: d.update(latestVersionUnstable=False), unstable) == []
    assert judged(lambda d: drop(d, "Watts"), unstable) != []


@for_each(catalogue.NAMES)
def test_every_definition_is_compatible_with_itself(name: str) -> None:
    findings = compare(load_definition(name), load_definition(name))
    assert findings == []
    assert is_compatible(findings)
