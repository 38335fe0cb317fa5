"""Tests that every spelling of an IP address is converted to one text."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.common.listening.addresses import canonical_address, without_zone


@for_each(
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::FFFF:7f00:1", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("[::1]", "::1"),
        ("2001:0DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0"),
        ("*", "*"),
        ("a.host", "a.host"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("1:2", "1:2"),
        ("::1\0", "::1\0"),
    ]
)
def test_forms(text: str, form: str) -> None:
    assert canonical_address(text) == form


@given(st.ip_addresses(v=6))
def test_all_forms_of_an_address_are_one(address: ipaddress.IPv6Address) -> None:
    forms = {canonical_address(text) for text in (str(address), address.exploded, address.exploded.upper())}
    assert len(forms) == 1
    assert ipaddress.ip_address(forms.pop()) == (address.ipv4_mapped or address)


def test_the_zone_is_left_out() -> None:
    assert (without_zone("fe80::1%eth0"), without_zone("::1")) == ("fe80::1", "::1")
