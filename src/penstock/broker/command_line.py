"""The options of a broker process: one table for ``penstock broker`` and ``python -m penstock.broker``.

Importing click takes about as long as the start of a broker. So this module parses command lines without
click, unless they need help or an error message. `penstock.cli.broker_command` builds its click options, with
help and error messages, from the same table.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from penstock.errors import ConfigError


class Option(NamedTuple):
    """One option of the command line.

    The option sets the field `name` of `CommandLine` or, if `setting` is given, this Kafka setting.
    """

    name: str
    spellings: tuple[str, ...]
    kind: Literal["text", "port", "number", "file", "setting", "flag"]
    metavar: str
    help: str
    setting: str | None = None


OPTIONS = (
    Option(
        "data_dir",
        ("-d", "--data-dir"),
        "text",
        "DIR",
        "Keep the log here, in Kafka's own layout. Without it: in memory.",
    ),
    Option("host", ("--host",), "text", "ADDRESS", "Address to listen on, 127.0.0.1 by default."),
    Option(
        "port",
        ("--port",),
        "port",
        "PORT",
        "Port to listen on, 9092 by default; 0 takes a free one and says which.",
    ),
    Option(
        "config",
        ("-o", "--override", "--config"),
        "setting",
        "NAME=VALUE",
        "A broker setting under Kafka's name, as in server.properties. May be repeated.",
    ),
    Option(
        "as_version",
        ("--as-version",),
        "text",
        "RELEASE",
        "Behave as this release of Apache Kafka: 0.8.2, 0.9, 0.10.2, 0.11, 1.1, 2.8, 3.9, 4.0 ...",
    ),
    Option(
        "brokers",
        ("--brokers",),
        "number",
        "N",
        "Run so many brokers with replicas in this process, on ports that follow one another: for tests.",
        setting="penstock.brokers",
    ),
    Option(
        "config_file",
        ("--config-file",),
        "file",
        "FILE",
        "A server.properties as Apache Kafka has it; other options go before it.",
    ),
    Option(
        "metrics_port",
        ("--metrics-port",),
        "port",
        "PORT",
        "Serve /metrics for Prometheus on this port of 127.0.0.1.",
        setting="penstock.metrics.port",
    ),
    Option(
        "listen_07",
        ("--listen-0.7",),
        "port",
        "PORT",
        "Speak Kafka 0.7 on this port as well, with topics of its own.",
        setting="penstock.0.7.port",
    ),
    Option(
        "for_tests",
        ("--for-tests",),
        "flag",
        "",
        "For a test in any language: a free port, one line of JSON that says which, an end with the parent.",
    ),
)

_BY_SPELLING = {spelling: option for option in OPTIONS for spelling in option.spellings}


class CommandLine(NamedTuple):
    """The parsed command line of a broker process.

    `data_dir` None keeps everything in memory. If host and port are None, ``listeners`` in the Kafka settings
    `config` decides, and without ``listeners`` the broker's defaults.
    """

    data_dir: str | None
    host: str | None
    port: int | None
    config: Mapping[str, str]
    as_version: str | None = None
    config_file: str | None = None
    for_tests: bool = False


def settings_of(values: Mapping[str, str], config: Mapping[str, str]) -> CommandLine:
    """Convert option values to a `CommandLine`: strings by the names in `OPTIONS`, a port in decimal."""
    own = {
        option.setting: values[option.name]
        for option in OPTIONS
        if option.setting is not None and option.name in values
    }
    port = values.get("port")
    return CommandLine(
        values.get("data_dir"),
        values.get("host"),
        None if port is None else int(port),
        {**config, **own},
        values.get("as_version"),
        values.get("config_file"),
        "for_tests" in values,
    )


def read(words: Sequence[str]) -> CommandLine:
    """Parse the words of a command line; return the settings.

    Raises:
        ConfigError: a word is no option, or a value is missing or does not fit.
    """
    values: dict[str, str] = {}
    config: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        spelling, joined, value = word.partition("=")
        option = _BY_SPELLING.get(spelling)
        if option is None or (joined and not spelling.startswith("--")):
            raise ConfigError(f"there is no option {word!r}")
        if option.kind == "flag":
            if joined:
                raise ConfigError(f"{spelling} takes no value")
            values[option.name] = "true"
            continue
        if not joined:
            value = next(rest, "")
        if not value or value.startswith("-"):
            raise ConfigError(f"{spelling} takes a value, {option.metavar}")
        if option.kind == "setting":
            name, equals, text = value.partition("=")
            if not name or not equals:
                raise ConfigError(f"{spelling} takes NAME=VALUE, not {value!r}")
            config[name] = text
        elif option.kind == "port" and not _is_port(value):
            raise ConfigError(f"{spelling} {value!r} is no port: 0 to 65535")
        elif option.kind == "number" and not (value.isascii() and value.isdecimal()):
            raise ConfigError(f"{spelling} takes a number, not {value!r}")
        else:
            values[option.name] = value
    return settings_of(values, config)


def read_plain(words: Sequence[str]) -> CommandLine | None:
    """Parse the words of a command line; return None if they contain a mistake or ask for help."""
    try:
        return read(words)
    except ConfigError:
        return None


def _is_port(text: str) -> bool:
    """Return True if `text` is a decimal number from 0 to 65535."""
    return text.isascii() and text.isdecimal() and int(text) <= 65535


def usage(program: str) -> str:
    """Return the usage line, which shows each option in its last spelling."""
    return " ".join(
        [f"usage: {program}"]
        + [
            f"[{f'{option.spellings[-1]} {option.metavar}'.rstrip()}]"
            f"{'...' if option.kind == 'setting' else ''}"
            for option in OPTIONS
        ]
    )


def _import_asyncio_without_openssl() -> None:
    """Import asyncio without OpenSSL, as on a Python without `ssl`, if neither has been imported yet.

    asyncio would load OpenSSL, which takes a tenth of the time of a start. A broker with TLS imports `ssl`
    itself: it encrypts without asyncio (`penstock.broker.network.tls_front`).
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # makes its import fail, which asyncio supports
    try:
        import asyncio  # noqa: F401
    finally:
        del sys.modules["ssl"]


def run(settings: CommandLine) -> int:
    """Run a broker until SIGTERM or Ctrl-C; return the exit code.

    Raises:
        PenstockError: the port is in use, the directory cannot be written, a setting is unknown.
    """
    gc.disable()  # objects made at a start stay; `penstock.broker.process` lets the collector run again
    _import_asyncio_without_openssl()
    from penstock.broker.process import run_broker

    try:
        return run_broker(
            data_dir=settings.data_dir,
            host=settings.host,
            port=settings.port,
            config=settings.config,
            as_version=settings.as_version,
            config_file=settings.config_file,
            for_tests=settings.for_tests,
        )
    finally:
        gc.enable()
