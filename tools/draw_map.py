"""Write the list of subpackages, with their docstrings' first lines, into ARCHITECTURE.md.

    python tools/draw_map.py

A test fails if the list does not match the source tree.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "penstock"
PAGE = ROOT / "ARCHITECTURE.md"

BEGIN = "<!-- map: python tools/draw_map.py -->\n```text\n"
END = "```\n<!-- end of map -->"


def purpose(package: Path) -> str:
    """Return the first line of a package's docstring, without its period."""
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0].removesuffix(".").replace("`", "")


def layers(container: str, contracts: list[dict[str, object]]) -> list[str]:
    """Return a package's subpackages from top to bottom layer; empty without a ``layers`` contract."""
    for contract in contracts:
        if contract.get("containers") == [container] and isinstance(contract["layers"], list):
            return [name for layer in contract["layers"] for name in re.findall(r"\w+", layer)]
    return []


def rows(package: Path, contracts: list[dict[str, object]], depth: int = 0) -> list[tuple[str, str]]:
    """Return the indented name and the purpose of each subpackage: by layer from the top, then by name."""
    container = ".".join(package.relative_to(PACKAGE.parent).parts)
    order = layers(container, contracts)
    rooms = [child for child in package.iterdir() if any(child.glob("*.py"))]
    rooms.sort(key=lambda room: (order.index(room.name) if room.name in order else len(order), room.name))
    found = []
    for room in rooms:
        found.append((f"{'  ' * depth}{room.name}/", purpose(room)))
        found += rows(room, contracts, depth + 1)
    return found


def current_map(page: str) -> str:
    """Return the list that the page has now, between its two markers.

    Raises ``ValueError`` if a marker is missing.
    """
    begin = page.index(BEGIN) + len(BEGIN)
    return page[begin : page.index(END, begin)]


def with_map(page: str) -> str:
    """Return the page with the list of the subpackages that the tree has now."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table = rows(PACKAGE, project["tool"]["importlinter"]["contracts"])
    width = max(len(name) for name, _ in table) + 1
    drawn = "".join(f"{name:<{width}}{text}\n" for name, text in table)
    begin = page.index(BEGIN) + len(BEGIN)
    return page[:begin] + drawn + page[page.index(END, begin) :]


if __name__ == "__main__":
    PAGE.write_text(with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
