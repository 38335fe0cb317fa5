"""``penstock broker``: options as a table, read without click when they are plain.

A broker starts in about the time that importing click takes, so a command line that needs neither help
nor an error message is read here, from the same table that click's command is built from. Whatever is
not plain (an unknown option, a missing value, `--help`) is left to click, which explains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SPELLINGS = {
    "--data-dir": "data_dir",
    "-d": "data_dir",
    "--host": "host",
    "--port": "port",
    "-o": "config",
    "--config": "config",
    "--override": "config",
    "--as-version": "as_version",
    "--config-file": "config_file",
    "--metrics-port": "metrics_port",
    "--listen-0.7": "listen_07",
}
"""Every option of the command, and the setting that it sets. `config` may be repeated."""


PORTS = {"metrics_port": "penstock.metrics.port", "listen_07": "penstock.0.7.port"}
"""Options that are settings of the broker under a name of their own."""


class Settings:
    """What to start. `data_dir` None keeps everything in memory; host and port None leave the choice to
    `listeners` among the Kafka settings in `config`, and without it to the broker's defaults."""

    __slots__ = ("as_version", "config", "config_file", "data_dir", "host", "port")

    def __init__(
        self,
        data_dir: str | None,
        host: str | None,
        port: int | None,
        config: Mapping[str, str],
        as_version: str | None = None,
        config_file: str | None = None,
    ) -> None:
        self.as_version = as_version
        self.config_file = config_file
        self.data_dir = data_dir
        self.host = host
        self.port = port
        self.config = config


def read_plain(words: Sequence[str]) -> Settings | None:
    """The settings that `words` ask for, or None where click has something to say about them."""
    values: dict[str, str] = {}
    config: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        option, joined, value = word.partition("=")
        setting = SPELLINGS.get(option)
        if setting is None or (joined and not option.startswith("--")):
            return None
        if not joined:
            value = next(rest, "")
        if not value or value.startswith("-"):
            return None
        if setting == "config":
            name, equals, text = value.partition("=")
            if not name or not equals:
                return None
            config[name] = text
        else:
            values[setting] = value
    port = values.get("port")
    if port is not None and not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        return None
    for setting, name in PORTS.items():
        if setting in values:
            config[name] = values[setting]
    return Settings(
        values.get("data_dir"),
        values.get("host"),
        None if port is None else int(port),
        config,
        values.get("as_version"),
        values.get("config_file"),
    )


def run(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        PenstockError: the port is in use, the directory cannot be written, a setting is unknown.
    """
    from penstock.broker.process import run_broker

    return run_broker(
        data_dir=settings.data_dir,
        host=settings.host,
        port=settings.port,
        config=settings.config,
        as_version=settings.as_version,
        config_file=settings.config_file,
    )
