"""Write the settings of the broker as keyword arguments, from its tables of settings.

    python tools/write_broker_settings.py

writes src/penstock/broker/config/keyword_settings.py. A test fails while that module is out of date.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.config.definition import BOOLEAN, DOUBLE, INT, LIST, LONG, SHORT, ConfigKey

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src" / "penstock" / "broker" / "config" / "keyword_settings.py"

TYPES = {BOOLEAN: "bool", INT: "int", SHORT: "int", LONG: "int", DOUBLE: "float", LIST: "str"}
WIDTH = 105

HEAD = '''\
"""The settings of the broker as keyword arguments, for editors and type checkers. Generated: do not edit.

Written by tools/write_broker_settings.py from the tables of settings. Settings without effect are left out:
give them in `config`, under their dotted names. Never imported by a broker that runs.
"""

from __future__ import annotations

from typing import TypedDict


class BrokerSettings(TypedDict, total=False):
    """The settings that `penstock.Broker` takes as keywords, beside its own arguments."""

'''


OWN_ARGUMENTS = ("host", "port")
"""Arguments of `Broker` that are not generated from settings."""


def is_shown(key: ConfigKey) -> bool:
    """Return True if a setting gets a keyword argument.

    Settings for Kafka 0.7 and settings without effect get none.
    """
    return key.has_effect and not key.name.startswith("penstock.0.7.") and key.name not in OWN_ARGUMENTS


def entry(key: ConfigKey) -> str:
    """Return the source of one setting's keyword with its description, in as few lines as possible."""
    default = "" if key.default in (None, "") else f" Default: {key.default}."
    text = " ".join((key.doc + default).split()).replace("\\", "\\\\")
    keyword = f"    {key.name.replace('.', '_')}: {TYPES.get(key.type, 'str')}\n"
    if len(text) + 10 <= WIDTH:
        return f'{keyword}    """{text}"""\n'
    lines = textwrap.wrap(text, WIDTH - 8)
    return keyword + '    """' + "\n    ".join(lines) + '"""\n'


def text() -> str:
    """Return the source of the whole module."""
    return HEAD + "".join(entry(key) for _, key in sorted(BROKER_KEYS.items()) if is_shown(key))


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
