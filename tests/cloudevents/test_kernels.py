"""Tests that the compiled checks of attributes accept nothing that the functions for one event refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_cases import TEXTS
from penstock.cloudevents import AttributeType, InvalidEventError
from penstock.cloudevents.columnar.kernels import header_read_kernels as headers
from penstock.cloudevents.columnar.kernels import texts
from penstock.cloudevents.columnar.kernels.json_scan_kernels import marked
from penstock.cloudevents.columnar.kernels.texts import is_plain
from penstock.cloudevents.event import check_core
from penstock.cloudevents.mediatype import is_json
from penstock.cloudevents.types import read_text
from penstock.records.kernels.compiled import first_marked, kernel, pointer, word_at

ALPHABET = "aZ09%/:?#[]@!$&'()*+,;=-._~ \"\\<>^`{|}TtZz+-.é\u0085\ufdd0\U0001ffff\x00\x7f\n"
TEXT = st.one_of(st.text(ALPHABET, max_size=40), st.text(max_size=20), st.sampled_from(TEXTS))
URIS = st.from_regex(
    r"\A([a-z][a-z0-9+.-]{0,5}:)?(//([^/?#\s]{0,12}))?[^?#\s]{0,12}(\?[^#\s]{0,6})?(#\S{0,6})?\Z"
)
TIMES = st.from_regex(
    r"\A[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][012][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,9})?"
    r"([Zz]|[+-][012][0-9]:?[0-6][0-9])?\Z"
)
MEDIA = st.from_regex(r"\A[a-z.+]{0,4}/?[A-Z+jsont]{0,8}( ?; ?[a-z]{0,3}=?[a-z\"]{0,3})?\Z")

KINDS = {
    AttributeType.STRING: headers.STRING_KIND,
    AttributeType.INTEGER: headers.INTEGER_KIND,
    AttributeType.BOOLEAN: headers.BOOLEAN_KIND,
    AttributeType.BINARY: headers.BINARY_KIND,
    AttributeType.URI: headers.URI_KIND,
    AttributeType.URI_REFERENCE: headers.REFERENCE_KIND,
    AttributeType.TIMESTAMP: headers.TIME_KIND,
}
is_valid_extension, is_valid_core, is_json_type = (
    headers.is_valid_extension,
    headers.is_valid_core,
    texts.is_json_type,
)


@kernel
def is_valid_value(kind, data):
    return is_valid_extension(kind, pointer(data), 0, len(data))


@kernel
def plain(data):
    return is_plain(word_at(pointer(data), 0))


@pytest.mark.parametrize("place", range(8))
def test_each_byte_in_each_place_is_plain_or_not(place):
    data = np.frombuffer(b"~ a~ a~ ", np.uint8).copy()
    for byte in range(256):
        data[place] = byte
        assert plain(data) == (0x20 <= byte < 0x7F)
        unusual = not 0x20 <= byte < 0x7F or byte in b'"\\'
        assert first_unusual(data) == (place if unusual else 8)


@kernel
def first_unusual(data):
    marks = marked(word_at(pointer(data), 0))
    return first_marked(marks) if marks != 0 else 8


@given(
    st.binary(min_size=8, max_size=8)
    | st.lists(st.sampled_from(b'a"\\ !\x1f\x20\x21\x7e\x7f\x80\xff#[]'), min_size=8, max_size=8).map(bytes)
)
@settings(max_examples=1000)
def test_the_first_unusual_byte_of_eight_is_found(data):
    unusual = [at for at, byte in enumerate(data) if byte < 0x20 or byte >= 0x7F or byte in b'"\\']
    assert first_unusual(np.frombuffer(data, np.uint8)) == min(unusual, default=8)


@kernel
def is_valid_attribute(slot, data):
    return is_valid_core(slot, pointer(data), 0, len(data))


@kernel
def says_json(data):
    return is_json_type(pointer(data), 0, len(data))


def array_of(raw):
    # Bytes after the end must not matter; the digits would if they were read.
    return np.frombuffer(raw + b"0000000000000000", np.uint8)[: len(raw)]


def refused(check, *arguments):
    try:
        check(*arguments)
    except InvalidEventError:
        return True
    return False


@settings(max_examples=600)
@given(st.one_of(TEXT, URIS, TIMES, MEDIA))
def test_values_of_every_type(text):
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    data = array_of(raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        assert not any(is_valid_value(kind, data) for kind in KINDS.values())
        return
    for declared, kind in KINDS.items():
        if is_valid_value(kind, data):
            read_text("x", declared, text)
    for name, slot in (
        ("id", headers.ID),
        ("source", headers.SOURCE),
        ("datacontenttype", headers.CONTENT_TYPE),
        ("dataschema", headers.DATASCHEMA),
    ):
        if is_valid_attribute(slot, data):
            check_core(name, text)
    if is_valid_attribute(headers.CONTENT_TYPE, data):
        assert says_json(data) == is_json(text)


@pytest.mark.parametrize(
    ("declared", "accepted"),
    [
        (AttributeType.STRING, ["", "x", "ä€🌎", "long enough for whole words, €, and then some more of it"]),
        (AttributeType.INTEGER, ["0", "-1", "999999999"]),
        (AttributeType.BOOLEAN, ["true", "false"]),
        (AttributeType.BINARY, ["", "TQ==", "TWE=", "TWFu", "+/+/"]),
        (AttributeType.URI, ["a:", "urn:x:y", "https://u:p@h.example:80/p/q?r=s&t#f", "mailto:a@b"]),
        (
            AttributeType.URI_REFERENCE,
            ["", "a", "a/b:c", "/a//b", "//h", "//h:/", "?q?", "#f/?", "%7E"],
        ),
        (AttributeType.TIMESTAMP, ["2018-04-05T03:56:24Z", "2000-02-29T23:59:59.1234567-23:59"]),
    ],
)
def test_what_is_common_is_not_asked_about(declared, accepted):
    for text in accepted:
        assert is_valid_value(KINDS[declared], array_of(text.encode())), text
        read_text("x", declared, text)


UNCOMPILED = """
import random
from cloudevents_cases import batch_of, outcomes, random_parts
from penstock.cloudevents import Event, decode_events, encode_events, from_record
from penstock.cloudevents.columnar import encode, located_rows
from penstock.records.kernels.compiled import COMPILED

assert not COMPILED and not located_rows.USE_KERNELS and not encode.USE_KERNELS
rng = random.Random(7)
records = [random_parts(rng) for _ in range(400)]
results = []
for use in (False, True):
    located_rows.USE_KERNELS = encode.USE_KERNELS = use
    table = decode_events(batch_of(records))
    events = table.filter(table.column("error").is_null())
    written = [encode_events(events, mode=mode, text_data=True) for mode in ("binary", "structured")]
    results.append([table.to_pylist(), *(batch.to_pylist() for batch in written)])
assert results[0] == results[1]
"""


def test_uncompiled_kernels_give_the_same():
    tests = Path(__file__).parents[1]
    environment = {
        **os.environ,
        "PENSTOCK_PURE_PYTHON": "1",
        "PYTHONPATH": os.pathsep.join([str(tests), *sys.path]),
    }
    subprocess.run([sys.executable, "-W", "error", "-c", UNCOMPILED], check=True, env=environment)
