"""``--config FILE``: client settings from Java's client.properties and from librdkafka's and kcat's files.

Passwords need not appear on a command line, where every user of the machine could read them. They come from
the file, from the environment (``PENSTOCK_SASL_PASSWORD``), from a reference ``${env:NAME}`` or
``${file:PATH}``, or from the keyboard. A password given with ``-X`` is refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from penstock.errors import ConfigError

FILE_VARIABLE = "PENSTOCK_CONFIG"
"""The environment variable that names a settings file if ``--config`` is not given."""

VARIABLE_PREFIX = "PENSTOCK_"
ASKED = "PENSTOCK_ASKED"
"""The key in click's `Context.meta` under which passwords typed on the terminal are stored."""

SECRETS = frozenset(
    (
        "sasl.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.pem",
        "ssl.keystore.key",
    )
)
"""The names of settings with secret values, which are refused in ``-X`` on a command line."""

JAVA_NAMES = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.")
"""Prefixes of setting names that only Java clients have: a file with such a name is parsed as Java
properties.
"""

FILE_BYTES_MAX = 1 << 20
MECHANISMS_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
REFERENCE = re.compile(r"\$\{(?:env|file):[^}]*\}")
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_config(path: str) -> dict[str, str]:
    """Return the settings in a file that apply to every client: addresses, security, time-outs.

    Settings of only producers or consumers are left out, since all commands use the same file.

    Raises:
        ConfigError: the file cannot be read, or a line is not a setting.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is longer than {FILE_BYTES_MAX} bytes: is it a file of settings?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    is_java = any(line.lstrip().startswith(JAVA_NAMES) for line in text.splitlines())
    found = _java(text, path) if is_java else _plain(text, path)
    return {name: value for name, value in found.items() if _concerns_all(name)}


def _plain(text: str, path: str) -> dict[str, str]:
    """Parse ``name=value`` lines as librdkafka and kcat do, without escapes."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{path}, line {number}: NAME=VALUE is expected")
        found[name.strip()] = value.strip()
    return found


def _java(text: str, path: str) -> dict[str, str]:
    r"""Parse lines as ``java.util.Properties`` does: ``=`` or ``:``, continuation by ``\``, and escapes."""
    found = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        whole = line.lstrip()
        if not whole or whole[0] in "#!":
            continue
        while _goes_on(whole):
            whole = whole[:-1] + next(lines, (0, ""))[1].lstrip()
        match = re.match(r"((?:[^\\=:\s]|\\.)+)\s*[=:\s]\s*(.*)", whole, re.DOTALL)
        if match is None:
            raise ConfigError(f"{path}, line {number}: NAME=VALUE is expected")
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        word = match[1]
        return chr(int(word[1:], 16)) if len(word) == 5 else ESCAPES.get(word, word)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text)


def _concerns_all(name: str) -> bool:
    from penstock.client.config import SECURITY_NAMES, ClientConfig, known_names

    return name.startswith(SECURITY_NAMES) or name in known_names(ClientConfig)


def completed(settings: Mapping[str, str], *, may_ask: bool = True) -> dict[str, str]:
    """Return the settings; with `may_ask`, prompt on the terminal for a missing SASL password and add it."""
    made = dict(settings)
    protocol = made.get("security.protocol", "PLAINTEXT").upper()
    mechanism = made.get("sasl.mechanism", made.get("sasl.mechanisms", "")).upper()
    wants = mechanism in MECHANISMS_WITH_PASSWORD and protocol.startswith("SASL")
    if wants and "sasl.username" in made and "sasl.password" not in made and may_ask and sys.stdin.isatty():
        made["sasl.password"] = _asked(made["sasl.username"])
    return made


def _asked(username: str) -> str:
    """Prompt on the terminal for a user's password, once per command, and return the password."""
    context = click.get_current_context(silent=True)
    answers: dict[str, str] = {} if context is None else context.meta.setdefault(ASKED, {})
    if username not in answers:
        answers[username] = click.prompt(f"password of {username}", hide_input=True, err=True)
    return answers[username]


def without_passwords(words: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of ``-X`` unchanged. Refuse secrets, because process lists show command lines.

    Raises:
        ConfigError: a setting is a secret. A reference to an environment variable or a file is allowed.
    """
    for name, value in words.items():
        if name in SECRETS and not REFERENCE.fullmatch(value):
            variable = VARIABLE_PREFIX + name.replace(".", "_").upper()
            raise ConfigError(
                f"-X {name}: every user of the machine can read a command line; write it into a file for "
                f"--config, into the environment variable {variable}, or as -X {name}='${{file:PATH}}'"
            )
    return words
