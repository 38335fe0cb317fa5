"""``python -m penstock.broker [--data-dir DIR] [--host HOST] [--port PORT] [--config NAME=VALUE]...``"""

from __future__ import annotations

import sys

from penstock.errors import PenstockError
from penstock.printable import printable

USAGE = (
    "usage: python -m penstock.broker [--data-dir DIR] [--host HOST] [--port PORT] [--config NAME=VALUE]..."
)


def main(words: list[str]) -> int:
    """Read the command line and serve; return the exit code. `penstock broker` has the friendly one."""
    options: dict[str, str] = {}
    config: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        option, _, value = word.partition("=")
        if option not in ("--data-dir", "--host", "--port", "--config"):
            return _fail(USAGE)
        value = value or next(rest, "")
        if option == "--config":
            name, equals, text = value.partition("=")
            if not equals:
                return _fail(USAGE)
            config[name] = text
        else:
            options[option] = value
    host, port = options.get("--host"), options.get("--port")
    if "listeners" not in config:
        host, port = host or "127.0.0.1", port or "0"
    if port is not None and not (port.isdecimal() and int(port) <= 65535):
        return _fail(f"--port {port!r} is no port: 0 to 65535")
    from penstock.broker.process import run_broker

    try:
        return run_broker(
            data_dir=options.get("--data-dir"),
            host=host,
            port=None if port is None else int(port),
            config=config,
        )
    except PenstockError as error:
        return _fail(str(error))


def _fail(line: str) -> int:
    print(printable(line), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
