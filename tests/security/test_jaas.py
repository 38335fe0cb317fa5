"""Tests of parsing JAAS configuration texts as users paste them; an error names its position."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import ConfigError
from penstock.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@for_each(
    [
        (f'{PLAIN} required username="ann" password="pw";', {"username": "ann", "password": "pw"}),
        (
            f"{PLAIN} REQUIRED\n username='ann'\n password = \"p'w\" ;\n",
            {"username": "ann", "password": "p'w"},
        ),
        (
            f"kafkashaded.{PLAIN} optional username=ann.b-c_$ password=x;",
            {"username": "ann.b-c_$", "password": "x"},
        ),
        (rf'{PLAIN} required password="a\"b\\c\tg\101";', {"password": 'a"b\\c\tgA'}),
        (f'{PLAIN} required password="";', {"password": ""}),
        (f'/* why */ {PLAIN} required // note\n password="//no comment";', {"password": "//no comment"}),
        (
            f"{PLAIN} required serviceName=kafka useKeyTab=true;",
            {"serviceName": "kafka", "useKeyTab": "true"},
        ),
        (f"{PLAIN} required;", {}),
        (f"{PLAIN} required password=ÄÖ;", {"password": "ÄÖ"}),
        (
            f'{PLAIN} required "unsecuredLoginStringClaim_sub"="ann";',
            {"unsecuredLoginStringClaim_sub": "ann"},
        ),
    ]
)
def test_what_people_paste(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(text)
    assert module.name == "PlainLoginModule"
    assert module.mechanism == "PLAIN"
    assert {key: value.reveal() for key, value in module.options.items()} == options


@for_each(
    [
        ("", "empty"),
        ("canary", "does not begin with the class"),
        ("canary is my password", "does not begin with the class"),
        ("  // only a comment", "empty"),
        (f'{PLAIN} required password="canary"', "semicolon"),
        (f"{PLAIN} required password=123canary;", "value of 'password'"),
        (f"{PLAIN} required password=@canary;", "value of 'password'"),
        (f"{PLAIN} required password=/canary/x;", "value of 'password'"),
        (f'{PLAIN} required username="ann", password="canary";', "name of an option"),
        (f'{PLAIN} required username "ann";', "'=' is expected"),
        (f'{PLAIN} username="ann" password="canary";', "required, requisite"),
        (f'{PLAIN} required password="canary', "quote that does not end"),
        (f"{PLAIN} required password='canary\n';", "quote that does not end"),
        (f'KafkaClient {{ {PLAIN} required password="canary"; }};', "braces"),
        (f'{PLAIN} required password="canary"; {PLAIN} required;', "there is more"),
        (f"{PLAIN} required password=", "value of 'password'"),
        (f"{PLAIN} required password", "'=' is expected"),
        (f"{PLAIN}", "required, requisite"),
        ('"x" required;', "class of a login module"),
        ("com.sun.security.auth.module.JndiLoginModule required x=y;", "not allowed"),
        ("x" * (1 << 20) + "y", "more than"),
    ]
)
def test_mistakes_are_shown_where_they_are_and_values_are_not(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_jaas(text)
    message = caught.value.args[0]
    assert "canary" not in message
    if "\n" in message:
        assert message.splitlines()[-1].strip() == "^"


def test_a_module_that_is_not_known_has_no_mechanism() -> None:
    assert parse_jaas("my.own.Module required;").mechanism is None
    assert parse_jaas("a.ScramLoginModule required;").mechanism == "SCRAM"
    assert parse_jaas("a.ScramLoginModule required username=x;").text("username") == "x"
    assert parse_jaas("a.ScramLoginModule required username=x;").text("password") is None


@settings(max_examples=300)
@given(st.text(max_size=80), st.booleans())
def test_any_text_is_read_or_refused(text: str, begun: bool) -> None:
    try:
        parse_jaas(f"{PLAIN} required {text}" if begun else text)
    except ConfigError:
        return


def test_values_stand_for_what_they_refer_to(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text("secret\n")
    text = f'{PLAIN} required username=ann password="${{file:{tmp_path}/ann}}";'
    assert parse_jaas(text).text("password") == "secret"
    (tmp_path / "ann").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        parse_jaas(text)
