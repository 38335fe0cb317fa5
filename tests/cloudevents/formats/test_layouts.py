"""Tests of the fast path for JSON envelopes of a known layout: it gives the events of the full parser."""

from __future__ import annotations

import json
import random

import pytest

from cloudevents_cases import SAMPLE_TYPES, described, random_structured
from for_each import for_each
from penstock.cloudevents import Event, InvalidEvent, from_record
from penstock.cloudevents.formats import json_format
from penstock.cloudevents.formats.layouts import LAYOUTS_MAX, Layouts
from penstock.cloudevents.repeats import CHARACTERS_MAX, remembered

STRUCTURED = [("content-type", b"application/cloudevents+json")]
REQUIRED = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
ENVELOPES = [
    REQUIRED,
    {**REQUIRED, "data": {"a": [1, "b"]}},
    {"id": "1", "source": "/s", "type": "t", "specversion": "1.0", "subject": "x", "data_base64": "TWE="},
    {**REQUIRED, "datacontenttype": "text/plain", "data": "text"},
    {**REQUIRED, "time": "2018-04-05T03:56:24Z", "datacontenttype": "application/json", "data": 1},
    {**REQUIRED, "dataschema": "https://example.com", "note": "n", "extboolean": "true", "extinteger": "5"},
    {**REQUIRED, "partitionkey": "p", "exttimestamp": "2018-04-05T03:56:24.5+02:00", "data": None},
    {**REQUIRED, "extbinary": "TWE=", "exturi": "a:b", "exturiref": "/x", "data": "x"},
]
PIECES = [
    '"', "\\", ",", ":", "{", "}", "[", "]", " ", "\t", "\n", "\r", "\x00", "\x1f", "\x7f", "\x85", "ä",
    "\ufeff", "\ufdd0", "\U0001ffff", "null", "true", "1", "-0", "0x1", "1.0", "NaN", "e5",
    '""', '"a":"b",', '"id":"2",', '"data":1,',
    '"data_base64":"TWE=",', ',"data":2', "\\n", "\\u0041", "\\ud800", "  ", "; charset=iso-8859-1", ";\ta=b",
    "+json", "T", "Z", "=", "9" * 5000, "[" * 200_000,
]  # fmt: skip


def learned(monkeypatch, lenient):
    """Return a parser's layouts after it has read all test envelopes, with and without spaces."""
    monkeypatch.setattr(json_format, "_layouts", Layouts())
    for envelope in ENVELOPES:
        read(json.dumps(envelope).encode(), lenient)
    layouts = json_format._layouts
    assert len(layouts.learnt) == len(ENVELOPES)
    return layouts


def read(value, lenient):
    profile = "lenient" if lenient else "strict"
    return from_record(None, value, STRUCTURED, profile=profile, extension_types=SAMPLE_TYPES)


def everything(outcome):
    """Return all fields of a decoded event, including the types of its extensions."""
    if not isinstance(outcome, Event):
        return outcome
    types = {name: type(value) for name, value in outcome.extensions.items()}
    return described(outcome), outcome.time, outcome.json_implied, types


def mutated(rng, text):
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        drop = rng.choice((0, 0, 1, 1, 2, 5))
        text = text[:at] + rng.choice(PIECES) * rng.choice((1, 1, 0)) + text[at + drop :]
    return text


@pytest.mark.parametrize("lenient", [False, True])
def test_a_known_layout_changes_no_answer(monkeypatch, lenient):
    rng = random.Random(lenient)
    layouts, none = learned(monkeypatch, lenient), Layouts()
    monkeypatch.setattr(none.__class__, "learn", lambda self, members: None)
    valid = by_layout = 0
    for _ in range(6_000):
        separators = rng.choice(((",", ":"), (", ", ": "), (" ,", " : ")))
        text = json.dumps(rng.choice(ENVELOPES), separators=separators, ensure_ascii=False)
        value = mutated(rng, text).encode("utf-8", "surrogatepass")
        if rng.random() < 0.2:
            value = random_structured(rng)[1]
        monkeypatch.setattr(json_format, "_layouts", layouts)
        got = read(value, lenient)
        by_layout += isinstance(got, Event) and any(layout.match(value.decode()) for layout in layouts.learnt)
        monkeypatch.setattr(json_format, "_layouts", none)
        wanted = read(value, lenient)
        assert everything(got) == everything(wanted), value
        valid += isinstance(got, Event)
    assert valid > 700
    assert by_layout > 200


@for_each(
    [
        (name, character)
        for character in ["\t", "\n", "\x00", "\x1f"]
        for name in ["datacontenttype", "id", "source", "type", "time", "data_base64", "note"]
    ]
)
def test_characters_that_json_wants_escaped_are_refused_though_the_layout_is_known(name, character):
    members = {
        **REQUIRED,
        name: {"datacontenttype": "a/b; c=d", "time": "2018-04-05T03:56:24Z"}.get(name, "TWE="),
    }
    text = json.dumps(members)
    assert isinstance(read(text.encode(), False), Event)
    assert isinstance(read(text.encode(), False), Event)
    wrong = (
        text.replace("; c=d", f";{character}c=d")
        if name == "datacontenttype"
        else text[:-2] + character + '"}'
    )
    outcome = read(wrong.encode(), False)
    assert isinstance(outcome, InvalidEvent)
    assert outcome.rule == "J1"


def test_layouts_are_learnt_from_valid_events_and_only_so_many():
    layouts = Layouts()
    layouts.learn({**REQUIRED, "data": 1, "subject": "x"})
    layouts.learn({**REQUIRED, "number": 5})
    layouts.learn({**REQUIRED, "a" * 100: "x"})
    layouts.learn({**REQUIRED, **{f"e{number}": "x" for number in range(100)}})
    assert layouts.learnt == ()
    for number in range(100):
        layouts.learn({**REQUIRED, f"e{number}": "x"})
    assert len(layouts.learnt) == LAYOUTS_MAX
    fifth = layouts.learnt[5]
    layouts.prefer(fifth)
    assert layouts.learnt[0] is fifth
    assert len(set(layouts.learnt)) == LAYOUTS_MAX


def test_long_texts_of_peers_do_not_stay():
    seen = []
    look_up = remembered(maxsize=1000)(lambda text: seen.append(text) or len(text))
    assert [look_up("a"), look_up("b"), look_up("a")] == [1, 1, 1]
    assert seen == ["a", "b"]
    for number in range(9):
        assert look_up(f"{number}" * (CHARACTERS_MAX // 4)) == CHARACTERS_MAX // 4
        assert look_up.cache_info().currsize <= 6
    assert look_up("a") == 1
    assert seen.count("a") == 2
