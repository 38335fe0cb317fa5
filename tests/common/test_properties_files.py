"""Tests of the parser for Java's properties files."""

from __future__ import annotations

import pytest

from penstock.common.properties_files import parse_properties
from penstock.errors import ConfigError


def pairs(text: str) -> dict[str, str]:
    return {each.name: each.value for each in parse_properties(text)}


def test_java_s_format() -> None:
    text = (
        "# comment\n! comment\n\n"
        "a=1\nb : 2\nc   3\n  d\t=\t4  \n"
        "e=one,\\\n    two,\\\n    three\n"
        "f\\=g = x\\\\y\nu=\\u00e9\\t.\nempty=\nnothing\na=again\n"
    )
    assert pairs(text) == {
        "a": "again", "b": "2", "c": "3", "d": "4", "e": "one,two,three",
        "f=g": "x\\y", "u": "é\t.", "empty": "", "nothing": "",
    }  # fmt: skip
    assert [each.line for each in parse_properties("x=1\ny=\\\n2\nz=3")] == [1, 2, 4]
    with pytest.raises(ConfigError, match="four hexadecimal"):
        parse_properties("a=\\u12")
    assert pairs("a=b\\") == {"a": "b"}


def test_escapes_of_java_properties() -> None:
    assert pairs("! c\n# d\n a = b\\:c\\=d \nx\\ty=1\n\nempty=\n") == {
        "a": "b:c=d",
        "x\ty": "1",
        "empty": "",
    }
