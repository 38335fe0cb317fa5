"""Write the message classes of `penstock.protocol.messages` and the table of API keys.

    generate_messages.py [--check]

Run this program after changing a definition. With --check nothing is written; the exit code is 0 if all
generated files are up to date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.protocol.quoting import literal
from penstock.protocol.schema.class_writer import LINE_MAX, module_source
from penstock.protocol.schema.definition import Definition, snake_case
from penstock.protocol.schema.loader import definitions_directory, read_definition

MESSAGES = "penstock.protocol.messages"
INDEX = '''"""Every message, each imported on first use. Generated: do not edit."""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    from penstock.protocol.message_index import HOMES

    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from penstock.protocol.message_index import HOMES

    return sorted(HOMES)
'''

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "penstock" / "protocol"


def read_all() -> list[Definition]:
    paths = sorted(Path(definitions_directory()).glob("*.json"))
    return [read_definition(path) for path in paths]


def index_source(definitions: list[Definition]) -> str:
    """Return the source of the module that maps each message's name to its module."""
    table = [f"    {literal(each.name)}: {literal(snake_case(each.name))}," for each in definitions]
    return "\n".join(
        [
            '"""The module of each message. Generated from the definitions: do not edit."""',
            "",
            "from __future__ import annotations",
            "",
            "HOMES = {",
            *table,
            "}",
            "",
        ]
    )


def stub_source(definitions: list[Definition]) -> str:
    """Return the type stub of the package, which imports each message only on first use."""
    imports = [import_lines(each.name, snake_case(each.name)) for each in definitions]
    return "\n".join([*sorted(imports, key=str.lower), ""])


def import_lines(name: str, home: str) -> str:
    line = f"from {MESSAGES}.{home} import {name} as {name}"
    return line if len(line) <= LINE_MAX else f"from {MESSAGES}.{home} import (\n    {name} as {name},\n)"


def api_source(definitions: list[Definition]) -> str:
    """Return the source of the API key enumeration and of a table with the properties of each API."""
    requests = sorted(
        (each for each in definitions if each.type == "request"), key=lambda each: each.api_key or 0
    )
    members, rows = [], []
    for each in requests:
        name = each.name.removesuffix("Request")
        members.append(f"    {snake_case(name).upper()} = {each.api_key}")
        flexible = each.flexible.intersect(each.valid)
        first = flexible.lowest if flexible else None
        versions = f"{each.valid.lowest}, {each.valid.highest}"
        listeners = ", ".join(map(literal, each.listeners)) + "," * (len(each.listeners) == 1)
        row = f"{each.api_key}, {literal(name)}, {versions}, {first}, {each.latest_unstable}"
        rows.append(f"    ({row}, ({listeners})),")
    return "\n".join(
        [
            '"""The keys of all APIs. Generated from the definitions: do not edit."""',
            "",
            "from __future__ import annotations",
            "",
            "from enum import IntEnum",
            "",
            "",
            "class ApiKey(IntEnum):",
            '    """The number of an API in the header of its requests."""',
            "",
            *members,
            "",
            "",
            "API_ROWS: tuple[tuple[int, str, int, int, int | None, bool, tuple[str, ...]], ...] = (",
            *rows,
            ")",
            '"""Key, name, lowest and highest version, first flexible, highest unstable?, listeners."""',
            "",
        ]
    )


def expected_files() -> dict[Path, str]:
    definitions = read_all()
    messages = PACKAGE / "messages"
    files = {messages / f"{snake_case(each.name)}.py": module_source(each) for each in definitions}
    files[messages / "__init__.pyi"] = stub_source(definitions)
    files[messages / "__init__.py"] = INDEX
    files[PACKAGE / "message_index.py"] = index_source(definitions)
    files[PACKAGE / "api_keys.py"] = api_source(definitions)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    options = parser.parse_args()
    files = expected_files()
    present = set((PACKAGE / "messages").glob("*.py"))
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    extra = sorted(present - files.keys())
    if options.check:
        for path in [*stale, *extra]:
            print(f"stale: {path.relative_to(PACKAGE)}")
        sys.exit(1 if stale or extra else 0)
    (PACKAGE / "messages").mkdir(exist_ok=True)
    for path in stale:
        path.write_text(files[path], "utf-8")
    for path in extra:
        path.unlink()
    print(f"{len(stale)} of {len(files)} files written, {len(extra)} removed")


if __name__ == "__main__":
    main()
