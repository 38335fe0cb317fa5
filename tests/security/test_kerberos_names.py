"""Tests of mapping Kerberos principals to user names, with the rules of Apache Kafka's KerberosShortNamer."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigError
from penstock.security.kerberos_names import parse_name_rules, short_name


@pytest.mark.parametrize(
    ("principal", "rules", "name"),
    [
        ("ann@EX.COM", "DEFAULT", "ann"),
        ("ann/host@EX.COM", "DEFAULT", "ann"),
        ("ann", "DEFAULT", "ann"),
        ("ann@EX.COM", r"RULE:[1:$1@$0](.*@EX.COM)s/@.*//", "ann"),
        ("ann@EX.COM", "RULE:[1:$1]/U", "ANN"),
        ("Ann@EX.COM", "RULE:[1:$1]/L", "ann"),
        ("ann/host@OTHER", "RULE:[1:$1], RULE:[2:$1-$2-$0](.*-OTHER)s/-/_/g,DEFAULT", "ann_host_OTHER"),
        ("ann/host@OTHER", "RULE:[2:$1-$2-$0](.*-OTHER)s/-/_/", "ann_host-OTHER"),
        ("bob@EX.COM", "RULE:[1:$1](ann),DEFAULT", "bob"),
    ],
)
def test_the_first_rule_that_applies_gives_the_name(principal: str, rules: str, name: str) -> None:
    assert short_name(principal, parse_name_rules(rules), "EX.COM") == name


@pytest.mark.parametrize(
    ("principal", "rules"),
    [
        ("ann@OTHER", "DEFAULT"),
        ("ann@EX.COM", ""),
        ("ann@EX.COM", "RULE:[1:$1@$0]"),
        ("a/b/c@EX.COM", "DEFAULT"),
        ("", "DEFAULT"),
    ],
)
def test_where_none_does_there_is_no_user(principal: str, rules: str) -> None:
    with pytest.raises(ValueError, match=r"rule|no principal"):
        short_name(principal, parse_name_rules(rules), "EX.COM")


@pytest.mark.parametrize(
    "rules", ["default", "RULE:[1:$1", "DEFAULT DEFAULT", "RULE:[1:$1](()", "RULE:[x:$1]"]
)
def test_malformed_rules_are_named(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"principal\.to\.local\.rules"):
        parse_name_rules(rules)
