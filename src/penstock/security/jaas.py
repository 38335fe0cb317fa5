"""The text of `sasl.jaas.config` as people paste it from Java: one login module, its flag and its options.

The grammar is that of Java's ``StreamTokenizer`` as Apache Kafka's JaasConfig uses it. Errors show the place
with a caret, and no quoted value. No class is loaded by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.security.secrets import HIDDEN, Secret, resolved

FLAGS = frozenset(("required", "requisite", "sufficient", "optional"))
TEXT_CHARACTERS_MAX = 1 << 20

MECHANISMS: Mapping[str, str] = {
    "PlainLoginModule": "PLAIN",
    "ScramLoginModule": "SCRAM",
    "OAuthBearerLoginModule": "OAUTHBEARER",
    "Krb5LoginModule": "GSSAPI",
    "IAMLoginModule": "AWS_MSK_IAM",
}
"""The SASL mechanisms by the last part of a login module's class name."""

REFUSED = frozenset(("JndiLoginModule", "LdapLoginModule"))
"""Modules that Apache Kafka refuses as well, because they look names up at servers of an attacker's
choice."""

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_$\u00a0-\U0010ffff][\w.$\u00a0-\U0010ffff-]*)
    |(?P<mark>[=;{}])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class LoginModule(NamedTuple):
    """One entry: the module's class without its package, its flag in lower case, and its options."""

    name: str
    flag: str
    options: dict[str, Secret]

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism of the module: ``SCRAM`` for either hash; None for an unknown module."""
        return MECHANISMS.get(self.name)

    def text(self, option: str) -> str | None:
        """Return the value of an option, or None if it is not set."""
        value = self.options.get(option)
        return None if value is None else value.reveal()


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse_jaas(text: str) -> LoginModule:
    """Return the entry in the text. Values such as ``"${file:/path}"`` are replaced by the file's text.

    Raises:
        ConfigError: the text does not follow the grammar, holds several entries, or names a refused module;
            or a referenced file, variable or key does not exist.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise ConfigError(f"sasl.jaas.config has more than {TEXT_CHARACTERS_MAX} characters")
    tokens = _tokens(text)
    if not tokens:
        raise ConfigError("sasl.jaas.config is empty: it names a login module, a flag, and options")
    name = tokens[0]
    if name.kind != "word":
        raise _error(text, name.position, "the class of a login module is expected")
    module = name.text.rpartition(".")[2]
    if module in REFUSED:
        raise ConfigError(f"sasl.jaas.config: the login module {module} is not allowed")
    flag = tokens[1] if len(tokens) > 1 else None
    if flag is not None and flag.text == "{":
        raise _error(text, flag.position, "one entry is expected, without a name and braces around it")
    if flag is None or flag.kind != "word" or flag.text.lower() not in FLAGS:
        if "." not in name.text:
            # A text of another kind, which may be a password: nothing of it is shown.
            raise ConfigError(
                "sasl.jaas.config does not begin with the class of a login module; write"
                ' org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
            )
        place = len(text) if flag is None else flag.position
        raise _error(text, place, f"{', '.join(sorted(FLAGS))} is expected after the login module")
    options: dict[str, Secret] = {}
    index = 2
    while True:
        if index >= len(tokens):
            raise _error(text, len(text.rstrip()), "the entry does not end with a semicolon")
        token = tokens[index]
        if token.text == ";" and token.kind == "mark":
            break
        index = _option(text, tokens, index, options)
    if index + 1 < len(tokens):
        raise _error(text, tokens[index + 1].position, "one login module is expected, and there is more")
    return LoginModule(module, flag.text.lower(), options)


def _option(text: str, tokens: list[_Token], index: int, options: dict[str, Secret]) -> int:
    """Add ``key=value`` to `options`; return the index of the next token."""
    key = tokens[index]
    if key.kind not in ("word", "quoted"):
        raise _error(text, key.position, "the name of an option or a semicolon is expected")
    if index + 1 >= len(tokens) or tokens[index + 1].text != "=" or tokens[index + 1].kind != "mark":
        place = tokens[index + 1].position if index + 1 < len(tokens) else len(text.rstrip())
        raise _error(
            text, place, f"'=' is expected after {key.text!r}" if key.kind == "word" else "'=' is expected"
        )
    if index + 2 >= len(tokens) or tokens[index + 2].kind not in ("word", "quoted"):
        place = tokens[index + 2].position if index + 2 < len(tokens) else len(text.rstrip())
        raise _error(
            text,
            place,
            f"the value of {key.text!r} is expected; quote what has other characters than letters",
        )
    options[key.text] = resolved(tokens[index + 2].text)
    return index + 3


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind == "blank":
            continue
        word = match.group()
        if kind == "quoted":
            word = _unquoted(word)
        elif word in ('"', "'"):
            raise _error(text, match.start(), "a quote that does not end on its line")
        found.append(_Token(kind, word, match.start()))
    return found


def _unquoted(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        word = match[1]
        return chr(int(word, 8)) if word[0] in "01234567" else ESCAPES.get(word, word)

    return re.sub(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", replace, text[1:-1])


def _error(text: str, position: int, why: str) -> ConfigError:
    """Return an error that quotes the text up to a position, with values hidden, and a caret below."""
    begin = max(text.rfind("\n", 0, position) + 1, 0)
    hidden = _without_values(text[begin:position])[-60:]
    rest = text[position : position + 1]
    shown = rest if rest in "{};=," else "…" if rest else ""
    return ConfigError(f"sasl.jaas.config: {why}:\n  {hidden}{shown}\n  {' ' * len(hidden)}^")


def _without_values(text: str) -> str:
    """Return the text with every value after ``=``, and every quoted text, hidden."""
    text = re.sub(r"""(["'])(?:(?!\1)[^\\]|\\.)*(\1|$)""", HIDDEN, text)
    return re.sub(r"=\s*(?!\s|\[hidden\])[^\s;=]+", f"={HIDDEN}", text)
