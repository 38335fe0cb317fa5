"""Generate the documentation pages of client, broker and topic options from the tables in the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import Any

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import ConfigKey
from penstock.broker.config.topic_keys import TOPIC_KEYS
from penstock.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from penstock.client.options import documented

TYPES = ("boolean", "string", "int", "short", "long", "double", "list", "class", "password")
"""Names of the setting types; type number N has the name at index N - 1."""


OTHER_NAME = re.compile(r"`+(?P<name>\w+)`+ in (?P<whose>[^.]+)\.")
"""A pattern for the description of an option that is only an alias of another one."""


BOOTSTRAP = ("str | Sequence[str]", "Where the cluster is: `host:port`, several separated by commas.")
"""Type and description of `bootstrap_servers`, which clients take as their first argument."""

ARGUMENTS = {
    "ProducerOptions": {
        "key_serializer": (
            "Callable[[K], bytes | None]",
            "What makes bytes of keys; without it, keys are bytes. It is never given None.",
        ),
        "value_serializer": (
            "Callable[[V], bytes | None]",
            "What makes bytes of values; without it, values are bytes. It is never given None.",
        ),
    },
    "ConsumerOptions": {
        "key_deserializer": (
            "Callable[[bytes], K]",
            "What reads keys; without it, they are bytes. It is never given None.",
        ),
        "value_deserializer": (
            "Callable[[bytes], V]",
            "What reads values; without it, they are bytes. It is never given None.",
        ),
    },
}
"""Types and descriptions of the constructors' arguments that are not options, such as serializers."""


def option_pages() -> dict[str, str]:
    """Return a dict from each page's file name to its text."""
    return {
        "client-options.md": client_page(),
        "broker-options.md": broker_page(),
        "topic-options.md": topic_page(),
    }


def cell(text: object) -> str:
    """Return a text with the escapes that a cell of a Markdown table needs."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("``", "`").replace("<", "&lt;")


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *([cell(each) for each in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def client_page() -> str:
    """Return the page with the options of producers, consumers and admin clients."""
    defaults: dict[str, Field[Any]] = {
        each.name: each for kind in (ClientConfig, ProducerConfig, ConsumerConfig) for each in fields(kind)
    }
    text = (
        "# Options of the client\n\n"
        "Every option is a keyword with underscores, `Producer(servers, linger_ms=5)`; in mappings and "
        'files it has Kafka\'s name with dots, `config={"linger.ms": 5}`. Durations are milliseconds, sizes '
        "are bytes. Names of librdkafka and of the Java clients are both understood. An unknown name is an "
        "error that suggests the nearest one.\n"
    )
    seen: set[str] = set()
    for title, options in (
        ("Every client", "ClientOptions"),
        ("Producers", "ProducerOptions"),
        ("Consumers", "ConsumerOptions"),
        ("Security", "SecurityOptions"),
    ):
        elsewhere = seen if options == "SecurityOptions" else seen | set(documented("SecurityOptions"))
        described = {name: about for name, about in documented(options).items() if name not in elsewhere}
        seen |= set(described)
        if options == "ClientOptions":
            described = {"bootstrap_servers": BOOTSTRAP} | described
        described |= ARGUMENTS.get(options, {})
        rows = [
            (f"`{name}`", f"`{kind}`", default_of(defaults.get(name)), doc + other_names(name, described))
            for name, (kind, doc) in described.items()
            if not OTHER_NAME.fullmatch(doc)
        ]
        text += f"\n## {title}\n\n" + table(("option", "type", "default", "meaning"), rows)
    return text


def default_of(option: Field[Any] | None) -> str:
    """Return an option's default as Markdown code; empty if there is none."""
    if option is None or option.default in (None, ()):
        return ""
    value = option.default
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"`{value:g}`" if isinstance(value, float) and value < 1e6 else f"`{value}`"


def other_names(name: str, described: Mapping[str, tuple[str, str]]) -> str:
    """Return a sentence with the aliases of an option; empty if there are none."""
    found = [
        f"`{other}` ({match['whose']})"
        for other, (_, doc) in described.items()
        if (match := OTHER_NAME.fullmatch(doc)) and match["name"] == name
    ]
    return f" Also {', '.join(found)}." if found else ""


def key_table(keys: Iterable[ConfigKey]) -> str:
    """Return a Markdown table of broker or topic settings."""
    rows = [
        (
            f"`{key.name}`",
            TYPES[key.type - 1],
            f"`{key.default}`" if key.default else "",
            bounds_of(key),
            key.doc,
        )
        for key in sorted(keys, key=lambda key: key.name)
    ]
    return table(("setting", "type", "default", "values", "meaning"), rows)


def bounds_of(key: ConfigKey) -> str:
    """Return a text with the values that a setting accepts: its choices, or its limits."""
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    low = f"from {key.at_least:,.15g}" if key.at_least is not None else ""
    high = f"to {key.at_most:,.15g}" if key.at_most is not None else ""
    return " ".join(part for part in (low, high) if part)


def broker_page() -> str:
    """Return the page with the broker's settings."""
    ours = [key for key in BROKER_KEYS.values() if key.name.startswith("penstock.")]
    effective = [key for key in BROKER_KEYS.values() if key.has_effect and key not in ours]
    idle = [key for key in BROKER_KEYS.values() if not key.has_effect and key not in ours]
    return (
        "# Settings of the broker\n\n"
        "They have Kafka's names: in a `server.properties` that `--config-file` names, on the command line "
        "as `-o NAME=VALUE`, and in Python as keywords with underscores, `Broker(log_retention_ms=-1)`. "
        "Settings of Apache Kafka that are in none of these tables are accepted, kept, and change nothing.\n"
        "\n## With an effect\n\n"
        + key_table(effective)
        + "\n## Penstock's own\n\n"
        + key_table(ours)
        + "\n## Without effect\n\nFiles written for Apache Kafka carry them; the last column has the reason "
        "why they mean nothing here.\n\n" + key_table(idle)
    )


def topic_page() -> str:
    """Return the page with the settings of topics."""
    keys = TOPIC_KEYS.values()
    return (
        "# Settings of topics\n\n"
        'Given when a topic is created, `admin.create_topic("orders", config={"retention.ms": "-1"})`, '
        "`penstock topic create -c retention.ms=-1`, or changed later. What is not set has the broker's "
        "default.\n\n"
        + key_table(key for key in keys if key.has_effect)
        + "\n## Without effect\n\n"
        + key_table(key for key in keys if not key.has_effect)
    )
