"""Write the schemas of the commands' ``--json`` output into docs/reference/command-line-json.md.

    python tools/write_json_nouns.py

A test fails if the page does not match the field tables in `penstock.cli.listing`.
"""

from __future__ import annotations

from pathlib import Path

from penstock.cli.listing import NOUNS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line-json.md"
BEGIN, END = "<!-- nouns: python tools/write_json_nouns.py -->", "<!-- end of nouns -->"


def tables() -> str:
    """Return a Markdown table of fields for each kind of object that commands list."""
    parts = []
    for noun, fields in NOUNS.items():
        rows = "\n".join(f"| `{field.name}` | {field.type} | {field.meaning} |" for field in fields)
        parts.append(f"### {noun}\n\n| Field | Type | Says |\n|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def with_tables(page: str) -> str:
    """Return the page with its tables replaced by current ones."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
