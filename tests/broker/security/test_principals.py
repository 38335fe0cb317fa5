"""Tests of certificate subjects in Java's notation, and of the rules that map them to principals."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.broker.security.distinguished_names import subject_of
from penstock.broker.security.principal_rules import parse_principal_rules, principal_name
from penstock.errors import ConfigError, DecodeError

x509 = pytest.importorskip("cryptography.x509")


def certificate(*parts: tuple[str, str] | list[tuple[str, str]]) -> bytes:
    """Return a certificate in DER whose subject has these parts, as pairs of object identifier and value."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def attribute(part: tuple[str, str]) -> object:
        return x509.NameAttribute(x509.ObjectIdentifier(part[0]), part[1])

    names = [part if isinstance(part, list) else [part] for part in parts]
    subject = x509.Name([x509.RelativeDistinguishedName(map(attribute, each)) for each in names])
    key = ec.generate_private_key(ec.SECP256R1())
    begin = datetime.datetime(2026, 1, 1)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return bytes(made.public_bytes(serialization.Encoding.DER))


CN, OU, ORG, EMAIL, SERIAL, UID = (
    "2.5.4.3", "2.5.4.11", "2.5.4.10", "1.2.840.113549.1.9.1", "2.5.4.5", "0.9.2342.19200300.100.1.1",
)  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "text"),
    [([(ORG, "Acme"), (OU, "Pay"), (CN, "ann")], "CN=ann,OU=Pay,O=Acme"),
     ([(CN, "Smith, Ann")], r"CN=Smith\, Ann"), ([(CN, 'a"b\\c<d>e;f+g')], r"CN=a\"b\\c\<d\>e\;f\+g"),
     ([(CN, "#x ")], r"CN=\#x\ "), ([(CN, " x")], r"CN=\ x"), ([(CN, "Jörg")], "CN=Jörg"),
     ([(EMAIL, "a@b.c"), (CN, "x")], "CN=x,1.2.840.113549.1.9.1=#16056140622e63"),
     ([(SERIAL, "12"), (UID, "u")], "UID=u,2.5.4.5=#13023132"), ([], "")],
)  # fmt: skip
def test_subjects_are_printed_as_java_does(parts: list[tuple[str, str]], text: str) -> None:
    assert subject_of(certificate(*parts)) == text


def test_parts_of_several_values_are_joined_by_plus() -> None:
    assert subject_of(certificate((ORG, "A"), [(CN, "x"), (OU, "y")])) in ("CN=x+OU=y,O=A", "OU=y+CN=x,O=A")


@given(st.binary(max_size=200))
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        subject_of(data)


def test_a_certificate_cut_anywhere_is_refused() -> None:
    whole = certificate((CN, "ann"))
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            subject_of(whole[:size])


@for_each(
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("", "CN=a", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", "CN=kafka-user,OU=ServiceUsers,O=x", "kafka-user"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),.*$/$1@$2/L", "CN=adminUser,OU=Admin,O=x,C=y", "adminuser@admin"),
        ("RULE:^CN=(.*?)(,.*)?$/$1/", "CN=solo", "solo"),
        ("RULE:^CN=(.*)$/$1/U", "CN=ann", "ANN"),
        ("RULE:CN=(x)/$1/", "CN=ann", None),
        ("RULE:^CN=(.)(.).*$/$3$1/", "CN=ann", "$3a"),
        ("RULE:^CN=(.*)$/$12/", "CN=a", "a2"),
        ("RULE:.*/fixed/", "CN=a", "fixedfixed"),
        (r"RULE:^CN=(\w+)\/.*$/$1\/x/", "CN=a/b", "a/x"),
        (r"RULE:^(?<who>.*)$/\$1/", "CN=a", "$1"),
        (" RULE:^CN=(.*)$/$1/ , DEFAULT ", "O=b", "O=b"),
    ]
)
def test_rules_make_names_as_java_does(rules: str, subject: str, name: str | None) -> None:
    assert principal_name(parse_principal_rules(rules), subject) == name


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "RULE:a/b/LU",
        "RULE:a/b/X",
        "RULE:a/b",
        "RULE:a",
        "RULE:(/b/",
        "RULE:a/$1/",
        "DEFAULT RULE:a/b/",
    ],
)
def test_rules_that_are_malformed_stop_the_start(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        parse_principal_rules(rules)
