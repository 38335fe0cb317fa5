"""Run commands in a terminal, and draw the terminal as docs/pictures/sql.svg and lake.svg.

python tools/draw_terminal.py [sql] [lake]
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from penstock import Broker, write_topic

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
COLUMNS = 96
SQL = (
    "penstock sql -c 'select user, count(*) as n, max(amount) as most from orders group by all'",
    "penstock sql -c \"explain select amount from orders where timestamp >= '2026-01-01T00:45:00Z'\"",
    'penstock sql -c \'select "offset", user, amount from orders order by "offset" desc limit 3\'',
)
LAKE = (
    "penstock land orders --to iceberg://local/sales.orders --format json --store-file catalog.toml",
    "penstock land orders --to iceberg://local/sales.orders --store-file catalog.toml --status",
    "penstock land orders --to iceberg://local/sales.orders --store-file catalog.toml --tidy",
)
COMMANDS = {"sql": ("penstock sql", SQL), "lake": ("penstock land", LAKE)}
CATALOG = """type = "sql"
uri = "sqlite:///catalog.db"
warehouse = "file://{place}/warehouse"
"""
SHOWN = Path(sys.executable).parent / "penstock"


def orders() -> pa.Table:
    """Return the records that docs/how-to/sql.md uses as an example."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "key": [f"user-{n % 5}" for n in range(3_000)],
            "value": [f'{{"user": "user-{n % 5}", "amount": {n % 90}}}' for n in range(3_000)],
            "timestamp": [start + timedelta(seconds=n) for n in range(3_000)],
        }
    )


def typed(command: str, servers: str) -> str:
    """Run a command in a pseudo-terminal; return its output."""
    said = bytearray()
    words = [str(SHOWN), *shlex.split(command)[1:], "-b", servers]

    def keep(descriptor: int) -> bytes:
        data = os.read(descriptor, 1 << 16)
        said.extend(data)
        return data

    os.environ["COLUMNS"] = str(COLUMNS)
    saved = os.dup(1)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        pty.spawn(words, keep)
    os.dup2(saved, 1)
    return said.decode().replace("\r\n", "\n")


def draw(name: str) -> None:
    """Run the commands of a picture, and write the picture with their output."""
    title, commands = COMMANDS[name]
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with Broker(log_retention_ms=-1) as broker:
        write_topic(orders(), "orders", broker.bootstrap_servers)
        for command in commands:
            console.print(Text("$ ", "bold green") + Text(command))
            console.print(Text.from_ansi(typed(command, broker.bootstrap_servers).rstrip()))
            console.print()
    drawn = console.export_svg(title=title)
    # The page loads no fonts from elsewhere: the reader's monospaced one will do.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    picture = PICTURES / f"{name}.svg"
    picture.write_text(re.sub(r"terminal-\d+", "terminal", drawn), encoding="utf-8")
    print(f"wrote {picture}")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        Path("catalog.toml").write_text(CATALOG.format(place=place), encoding="utf-8")
        for name in sys.argv[1:] or COMMANDS:
            draw(name)


if __name__ == "__main__":
    main()
