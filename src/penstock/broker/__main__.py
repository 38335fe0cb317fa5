"""``python -m penstock.broker``: runs ``penstock broker``, with its options, without importing click."""

from __future__ import annotations

import sys

from penstock.broker.command_line import read, run, usage
from penstock.errors import ConfigError, PenstockError
from penstock.printable import printable


def main(words: list[str]) -> int:
    """Run a broker with the arguments `words`; return the exit code, 1 if they contain a mistake.

    If no port is given, a free one is taken.
    """
    try:
        settings = read(words)
    except ConfigError as error:
        return _fail(f"{error}; {usage('python -m penstock.broker')}")
    if "listeners" not in settings.config and settings.config_file is None:
        settings = settings._replace(
            host=settings.host or "127.0.0.1", port=0 if settings.port is None else settings.port
        )
    try:
        return run(settings)
    except PenstockError as error:
        return _fail(str(error))


def _fail(line: str) -> int:
    print(printable(line), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
