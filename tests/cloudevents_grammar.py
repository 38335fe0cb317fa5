"""Test cases for the syntax of CloudEvents attributes, for single events, columns and Spark SQL.

A case is an attribute, its value in a header, and the rule that it breaks, or None.
"""

from __future__ import annotations

REQUIRED = {"specversion": b"1.0", "id": b"1", "source": b"/s", "type": b"t"}

VALID_REFERENCES = (
    "a", "/", "//", "//h", "//h/", "//h:/", "//h:80", "//u:p@h/x", "//[::1]", "//[::1]:8/x", "//[1::]",
    "//[1:2:3:4:5:6:7:8]", "//[::ffff:1.2.3.4]", "//[v1.a:b]", "a/b:c", "/a//b", "?q", "?q?", "#f", "#f/?",
    "%41", "%7e", "./a:b", "*", "@", "urn:a:b", "mailto:a@b.c", "https://u:p@h.example:80/p/q?r=s&t#f",
    "a:", "a+b-c.d:e", "a:/", "a://", "A1:x", "~!$&'()*+,;=",
)  # fmt: skip
INVALID_REFERENCES = (
    " ", "a b", "1:x", ":x", "a%", "a%4", "a%4g", "//[::1", "//[:::1]", "//[1:2:3:4:5:6:7]",
    "//[::1.2.3.256]",
    "//[::01.2.3.4]", "//[1:2:3:4:5:6:7:8:9]", "//[g::]", "//[v.a]", "//h:8a", "//u@v@h", "a[b]",
    "a\\b", "a^b",
    "a|b", "a\"b", "<a>", "{a}", "a`b", "##", "#a#b", "ä", "a\x7f", "//[::1]x",
)  # fmt: skip
ABSOLUTE = tuple(
    text for text in VALID_REFERENCES if text[0].isalpha() and ":" in text and "/" not in text.split(":")[0]
)

VALID_TIMESTAMPS = (
    "2018-04-05T03:56:24Z", "2018-04-05t03:56:24z", "2018-04-05T03:56:24.1Z",
    "2018-04-05T03:56:24.123456789+02:00",
    "2000-02-29T23:59:59-23:59", "2016-12-31T23:59:60Z", "0000-02-29T00:00:00Z", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+01:00", "2024-02-29T00:00:00.000Z",
)  # fmt: skip
INVALID_TIMESTAMPS = (
    "2018-04-05", "2018-04-05T03:56Z", "2018-04-05 03:56:24Z", "2018-04-05T03:56:24",
    "2018-04-05T24:00:00Z",
    "2018-04-05T03:60:24Z", "2018-04-05T03:56:61Z", "2018-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
    "2018-13-01T00:00:00Z", "2018-00-01T00:00:00Z", "2018-04-31T00:00:00Z", "2018-04-00T00:00:00Z",
    "2018-04-05T03:56:24.Z", "2018-04-05T03:56:24+24:00", "2018-04-05T03:56:24+0200", "18-04-05T03:56:24Z",
    "2018-04-05T03:56:24ZZ", "+018-04-05T03:56:24Z",
)  # fmt: skip

VALID_MEDIA_TYPES = (
    "application/json", "Application/JSON; charset=utf-8", "text/plain;charset=\"utf-8\"",
    "a/b ;c=d\t; e=f",
    "model/gltf+json", "!#$%&'*+-.^_`{|}~/x", "a/b;c=\"d\\\"e\"", "a/b;c=\"\"", "a/b ",
    "text/xml; a=\"; b=c\"",
)  # fmt: skip
INVALID_MEDIA_TYPES = (
    "xyz", "/", "a/", "/b", "a/b;", "a/b; ", "a/b;c", "a/b;c=", "a/b;c=\"d", "a/b c", "a b/c", "a/b;c=d,e",
    "a/b/c", "ä/b", "a/b;c=\"\x01\"", "a/b;=d", "(a)/b", " a/b",
)  # fmt: skip

CASES: list[tuple[str, str, str | None]] = [
    *(("source", text, None) for text in VALID_REFERENCES),
    *(("source", text, "T6") for text in INVALID_REFERENCES),
    *(("dataref", text, None) for text in ("", *VALID_REFERENCES)),
    *(("dataref", text, "T6") for text in INVALID_REFERENCES),
    *(("dataschema", text, None) for text in ABSOLUTE),
    *(("dataschema", text, "T5") for text in VALID_REFERENCES if text not in ABSOLUTE),
    *(("deprecationmigration", text, "T5") for text in INVALID_REFERENCES),
    *(("time", text, None) for text in VALID_TIMESTAMPS),
    *(("time", text, "T7") for text in INVALID_TIMESTAMPS),
    *(("expirytime", text, None) for text in VALID_TIMESTAMPS),
    *(("expirytime", text, "T7") for text in ("", *INVALID_TIMESTAMPS)),
    *(("datacontenttype", text, None) for text in VALID_MEDIA_TYPES),
    *(("datacontenttype", text, "C13") for text in INVALID_MEDIA_TYPES),
    *(("subject", text, None) for text in ("a", " ", "ä€", "\U0001f30e", "\ufdcf", "\ufdf0", "\u00a0", "~")),
    *(
        ("subject", text, "T3")
        for text in (
            "\x00",
            "a\x1f",
            "\x7f",
            "\x80",
            "\x9f",
            "\ufdd0",
            "\ufdef",
            "\ufffe",
            "\U0001ffff",
            "\n",
        )
    ),
    *(("note", text, "T3") for text in ("\t", "\U0010fffe")),
    *(("sampledrate", text, None) for text in ("0", "-0", "5", "-5", "2147483647", "-2147483648")),
    *(
        ("sampledrate", text, "T2")
        for text in (
            "",
            "+5",
            "05",
            "-",
            "5.0",
            "1e3",
            "2147483648",
            "-2147483649",
            "99999999999999999999",
            "٣",
        )
    ),
    *(("deprecated", text, None) for text in ("true", "false")),
    *(("deprecated", text, "T1") for text in ("", "True", "TRUE", "1", "true ", "truefalse")),
    *(("dssematerial", text, None) for text in ("", "TQ==", "TWE=", "TWFu", "+/+/")),
    *(
        ("dssematerial", text, "T4")
        for text in ("T", "TQ", "TQ=", "TR==", "TWF=", "TW E=", "====", "TQ==TQ==", "-_")
    ),
    *((name, "x", None) for name in ("a", "0", "a1b2", "x" * 40, "datax")),
    *((name, "x", "D6") for name in ("data", "", "a_b", "A", "aB", "a.b", "ä", "a b")),
]


def headers_of(name: str, text: str) -> list[tuple[str, bytes]]:
    """Return the headers of a binary record that is valid except possibly for this attribute."""
    if name == "datacontenttype":
        return [*((f"ce_{known}", raw) for known, raw in REQUIRED.items()), ("content-type", text.encode())]
    attributes = REQUIRED | {name: text.encode()}
    return [(f"ce_{known}", raw) for known, raw in attributes.items()]


RECORDS = [(None, b"{}", headers_of(name, text)) for name, text, _ in CASES]
EXPECTED = [(name, text, rule) for name, text, rule in CASES]
