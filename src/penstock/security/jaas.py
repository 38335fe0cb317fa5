"""JAAS configurations of Java programs: the text of `sasl.jaas.config`, and files with sections.

A text of `sasl.jaas.config` is one login module, its flag and its options; a file has sections of such
entries. The grammar is that of Java's ``StreamTokenizer`` as Apache Kafka's JaasConfig uses it. Errors mark
the position with a caret, and show no quoted value. No class is loaded by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.security.secrets import HIDDEN, Secret, resolved

SETTING = "sasl.jaas.config"
FLAGS = frozenset(("required", "requisite", "sufficient", "optional"))
TEXT_CHARACTERS_MAX = 1 << 20

MECHANISMS: Mapping[str, str] = {
    "PlainLoginModule": "PLAIN",
    "ScramLoginModule": "SCRAM",
    "OAuthBearerLoginModule": "OAUTHBEARER",
    "Krb5LoginModule": "GSSAPI",
    "IAMLoginModule": "AWS_MSK_IAM",
}
"""The SASL mechanism of each login module, by the module's class name without its package."""

REFUSED = frozenset(("JndiLoginModule", "LdapLoginModule"))
"""Login modules that Apache Kafka also refuses: they look up names at servers of an attacker's choice."""

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
    """One login module of a JAAS configuration: class without package, flag in lower case, and options."""

    name: str
    flag: str
    options: dict[str, Secret]

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism of the module; ``SCRAM`` stands for both hashes. None for an unknown module."""
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
    """Return the only entry in a text. Values such as ``"${file:/path}"`` are replaced by the file's text.

    Raises:
        ConfigError: the text does not follow the grammar, holds several entries, or names a refused module;
            or a referenced file, variable or key does not exist.
    """
    reader = _Reader(text, SETTING)
    if not reader.tokens:
        raise ConfigError(f"{SETTING} is empty: it names a login module, a flag, and options")
    name, flag, options = reader.entry()
    if reader.next() is not None:
        raise reader.error("one login module is expected, and there is more")
    return LoginModule(name, flag, {key: resolved(value) for key, value in options.items()})


class JaasEntry(NamedTuple):
    """One entry of a section: the class of the module without its package, and the entry's own text."""

    name: str
    text: str


def parse_jaas_file(text: str, path: str) -> dict[str, list[JaasEntry]]:
    """Return the entries of a file of sections ``NAME { ENTRY; ENTRY; };``, by the names of the sections.

    Each entry's text can be passed to `parse_jaas`, which resolves references in values. `path` is the name
    of the file in error messages.

    Raises:
        ConfigError: the text does not follow the grammar, has a section twice, or names a refused module.
    """
    reader = _Reader(text, path)
    sections: dict[str, list[JaasEntry]] = {}
    while (name := reader.next()) is not None:
        if name.kind not in ("word", "quoted"):
            raise reader.error("the name of a section is expected, such as KafkaServer")
        if name.text in sections:
            raise reader.error(f"there is a section {name.text} already")
        reader.index += 1
        reader.mark("{", f"'{{' is expected after the name of the section {name.text}")
        entries = sections[name.text] = []
        while not reader.is_mark("}"):
            begin = reader.position()
            module, _, _ = reader.entry()
            entries.append(JaasEntry(module, text[begin : reader.end]))
        reader.index += 1
        reader.mark(";", f"the section {name.text} does not end with '}};'")
    return sections


class _Reader:
    """Reads the tokens of a JAAS text. `subject` is the name of the setting or file in error messages."""

    def __init__(self, text: str, subject: str) -> None:
        if len(text) > TEXT_CHARACTERS_MAX:
            raise ConfigError(f"{subject} has more than {TEXT_CHARACTERS_MAX} characters")
        self._text = text
        self._subject = subject
        self.tokens = self._tokens()
        self.index = 0
        self.end = 0
        """The position after the semicolon of the entry that was read last."""

    def next(self) -> _Token | None:
        """Return the next token without consuming it, or None at the end of the text."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def position(self) -> int:
        """Return the position of the next token, or the end of the text if there is none."""
        token = self.next()
        return len(self._text.rstrip()) if token is None else token.position

    def is_mark(self, text: str) -> bool:
        """Return True if the next token is the punctuation mark `text`, such as ``{``."""
        token = self.next()
        return token is not None and token.kind == "mark" and token.text == text

    def mark(self, text: str, why: str) -> None:
        """Consume the punctuation mark `text`; raise ConfigError with reason `why` if it is not next."""
        if not self.is_mark(text):
            raise self.error(why)
        self.index += 1

    def entry(self) -> tuple[str, str, dict[str, str]]:
        """Consume one entry; return the class of its module, its flag and its options."""
        name = self.next()
        if name is None or name.kind != "word":
            raise self.error("the class of a login module is expected")
        module = name.text.rpartition(".")[2]
        if module in REFUSED:
            raise ConfigError(f"{self._subject}: the login module {module} is not allowed")
        self.index += 1
        flag = self.next()
        if self.is_mark("{"):
            raise self.error("one entry is expected, without a name and braces around it")
        if flag is None or flag.kind != "word" or flag.text.lower() not in FLAGS:
            if "." not in name.text:
                # A text of another kind, which may be a password: nothing of it is shown.
                raise ConfigError(
                    f"{self._subject} does not begin with the class of a login module; write org.apache.kafka"
                    '.common.security.plain.PlainLoginModule required username="…" password="…";'
                )
            raise self.error(f"{', '.join(sorted(FLAGS))} is expected after the login module")
        self.index += 1
        options: dict[str, str] = {}
        while not self.is_mark(";"):
            self._option(options)
        self.end = self.position() + 1
        self.index += 1
        return module, flag.text.lower(), options

    def _option(self, options: dict[str, str]) -> None:
        """Consume one ``key=value`` of a login module, and add it to the dict `options`."""
        key = self.next()
        if key is None:
            raise self.error("the entry does not end with a semicolon")
        if key.kind not in ("word", "quoted"):
            raise self.error("the name of an option or a semicolon is expected")
        self.index += 1
        self.mark("=", f"'=' is expected after {key.text!r}" if key.kind == "word" else "'=' is expected")
        value = self.next()
        if value is None or value.kind not in ("word", "quoted"):
            raise self.error(
                f"the value of {key.text!r} is expected; quote what has other characters than letters"
            )
        options[key.text] = value.text
        self.index += 1

    def _tokens(self) -> list[_Token]:
        found = []
        for match in TOKEN.finditer(self._text):
            kind = match.lastgroup or ""
            if kind == "blank":
                continue
            word = match.group()
            if kind == "quoted":
                word = _unquoted(word)
            elif word in ('"', "'"):
                raise self._error(match.start(), "a quote that does not end on its line")
            found.append(_Token(kind, word, match.start()))
        return found

    def error(self, why: str) -> ConfigError:
        """Return an error with the reason `why` that points to the next token."""
        return self._error(self.position(), why)

    def _error(self, position: int, why: str) -> ConfigError:
        """Return an error that shows the text before `position`, without values, and a caret below it."""
        text = self._text
        begin = max(text.rfind("\n", 0, position) + 1, 0)
        hidden = _without_values(text[begin:position])[-60:]
        rest = text[position : position + 1]
        shown = rest if rest in "{};=," else "…" if rest else ""
        return ConfigError(f"{self._subject}: {why}:\n  {hidden}{shown}\n  {' ' * len(hidden)}^")


def _unquoted(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        word = match[1]
        return chr(int(word, 8)) if word[0] in "01234567" else ESCAPES.get(word, word)

    return re.sub(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", replace, text[1:-1])


def _without_values(text: str) -> str:
    """Return the text with every value after ``=``, and every quoted text, hidden."""
    text = re.sub(r"""(["'])(?:(?!\1)[^\\]|\\.)*(\1|$)""", HIDDEN, text)
    return re.sub(r"=\s*(?!\s|\[hidden\])[^\s;=]+", f"={HIDDEN}", text)
