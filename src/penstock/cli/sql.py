"""``penstock sql``: runs SQL queries on topics, singly or in a shell."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli import waiting
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import note
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.queries.session import SqlSession, TopicOptions

LAYOUTS = ("table", "csv", "json", "parquet")
VALUE_FORMATS = ("auto", "bytes", "text", "json", "cloudevents", "avro", "protobuf")


@click.command("sql", short_help="Ask topics in SQL.")
@bootstrap_option()
@click.option("-c", "--command", "commands", metavar="SQL", multiple=True, help="Run this, and exit.")
@click.option("-f", "--file", metavar="FILE", help="Run the statements of a file, and exit; - is stdin.")
@click.option(
    "--format", "layout", type=click.Choice(LAYOUTS), help="How to print rows: table (default) or lines."
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the last rows into FILE. Its ending says the format."
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--values",
    "value_format",
    type=click.Choice(VALUE_FORMATS),
    default="auto",
    show_default=True,
    help="What values are; auto looks at the newest ones.",
)
@click.option("--registry", metavar="URL", help="A schema registry: fields of its values become columns.")
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
    help="read_committed leaves out what is aborted or not committed yet.",
)
@click.option(
    "--max-lateness", metavar="DURATION", help="How late records come at most, as 10m: ends reads by time."
)
@click.option("--memory-limit", metavar="SIZE", help="What DuckDB may use before it uses files, as 2GB.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
@property_option()
def command(
    bootstrap: str,
    commands: tuple[str, ...],
    file: str | None,
    layout: str | None,
    output: str | None,
    follow: bool,
    value_format: str,
    registry: str | None,
    isolation: str,
    max_lateness: str | None,
    memory_limit: str | None,
    quiet: bool,
    properties: tuple[str, ...],
) -> None:
    """Query topics in SQL, with DuckDB. Without -c and -f: a shell, with history and TAB.

    A topic is a table under its name; names with hyphens or dots, and the column "offset", need double
    quotes. Keys and values are text, and fields of JSON objects are columns. "explain select ..." shows what
    would be fetched.

    \b
    Examples:
      penstock sql -c 'select count(*) from delays'
      penstock sql -c "from delays where timestamp > now() - interval '1 hour'"
      penstock sql -c 'select carrier, delay from delays' -o delays.parquet
      penstock sql -c "insert into late select value from delays where delay > 9"
      penstock sql --follow -c 'select key, delay from delays where delay > 60'
    """
    if commands and file is not None:
        raise ConfigError("-c and -f both say what to run: leave out one of them")
    if follow and not (commands or file):
        raise ConfigError("--follow needs a query: add -c SQL or -f FILE")
    if output is not None:
        layout = layout or _layout_of(output)
    elif layout == "parquet" and sys.stdout.isatty():
        raise ConfigError("Parquet is not for terminals: give -o FILE, or a pipe")
    if quiet:
        waiting.be_quiet()
    from penstock.common.extras import need_arrow

    need_arrow("penstock sql")
    from penstock.queries.progress import QueryProgress
    from penstock.queries.session import SqlSession, TopicOptions

    options = TopicOptions(
        value_format=value_format,
        isolation=isolation,
        max_lateness=max_lateness,
        config=client_settings(properties),
        registry=registry,
    )
    if follow:
        _follow("\n".join(commands) or _text_of(file), bootstrap, options, layout or "table", output)
        return
    progress = QueryProgress(False if quiet else None)
    with SqlSession(bootstrap, options, memory_limit=memory_limit, on_progress=progress.update) as session:
        if commands or file is not None:
            text = ";\n".join(commands) if commands else _text_of(file)
            try:
                _run_all(session, text, layout or "table", output, is_quiet=quiet)
            finally:
                progress.end()
            return
        if not sys.stdin.isatty():
            raise ConfigError("a shell needs a terminal: give -c SQL, or -f - for statements on stdin")
        from penstock.cli.sql_shell import Shell

        Shell(session, bootstrap, layout or "table", progress).run()


def _layout_of(path: str) -> str:
    ending = Path(path).suffix.removeprefix(".").lower()
    known = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
    if ending not in known:
        raise ConfigError(f"{path}: the ending says no format; add --format {' or '.join(LAYOUTS)}")
    return known[ending]


def _text_of(file: str | None) -> str:
    if file is None or file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 text: {error}") from None


def _run_all(session: SqlSession, text: str, layout: str, output: str | None, *, is_quiet: bool) -> None:
    """Run statements in turn; print the rows of each, or write those of the last to a file."""
    from penstock.cli.sql_rows import summary, write_rows

    statements = session.statements(text)
    for number, statement in enumerate(statements, 1):
        began = time.monotonic()
        reader = session.run(statement)
        if output is not None and number < len(statements):
            session.table(reader)
            continue
        rows = write_rows(session.batches(reader), reader.schema, layout, output or "-")
        if not is_quiet and (output is not None or sys.stderr.isatty()):
            note(summary(session.watch, rows, time.monotonic() - began))


def _follow(query: str, bootstrap: str, options: TopicOptions, layout: str, output: str | None) -> None:
    from penstock.queries.asking import followed

    if output is not None or layout == "parquet":
        raise ConfigError(
            "--follow has no end, which a file needs: leave out -o, and take table, csv or json"
        )
    waiting.idle("waiting for records")
    with followed(query, bootstrap, options) as batches:
        from penstock.cli.sql_rows import put_followed

        put_followed(batches, batches.schema, layout)
