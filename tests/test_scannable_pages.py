"""Tests that pages about limits and differences are tables with one short row for each fact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
LIMITATIONS, LIMITS = DOCS / "limitations.md", DOCS / "reference" / "limits.md"
DIFFERENCES, REASONS = DOCS / "reference" / "differences.md", DOCS / "reference" / "limits-reasons.md"

WORDS_MAX = 25
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def rows(page: Path) -> list[list[str]]:
    """Return the cells of every table row of a page, without table headers."""
    found, before = [], ""
    for line in page.read_text("utf-8").splitlines():
        is_head = line.startswith("| ") and not before.startswith("|")
        if line.startswith("| ") and not is_head:
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
        before = line
    return found


@pytest.mark.parametrize("page", [LIMITATIONS, LIMITS, DIFFERENCES], ids=lambda page: str(page.stem))
def test_the_last_cell_of_a_row_is_a_line_of_at_most_25_words(page: Path) -> None:
    lines = [LINK.sub(r"\1", row[-1]) for row in rows(page)]
    assert len(lines) > 50
    assert [line for line in lines if len(line.split()) > WORDS_MAX] == []


def test_limitations_are_rows_of_two_cells_that_end_as_sentences() -> None:
    assert [row for row in rows(LIMITATIONS) if len(row) != 2 or not re.search(r"[.)]\Z", row[1])] == []
    assert not re.search(r"^\* ", LIMITATIONS.read_text("utf-8"), re.MULTILINE)


def test_an_area_says_each_thing_once() -> None:
    for area in LIMITATIONS.read_text("utf-8").split("\n## ")[1:]:
        names = re.findall(r"^\| (.*?) \| ", area, re.MULTILINE)
        assert len(names) == len(set(names)), area.partition("\n")[0]


def test_every_page_of_reasons_is_linked_from_its_area() -> None:
    linked = re.findall(r"reference/limitations/([\w.-]+\.md)", LIMITATIONS.read_text("utf-8"))
    assert set(linked) == {page.name for page in (DOCS / "reference" / "limitations").glob("*.md")}


def test_every_limit_has_a_reason() -> None:
    assert [row[0] for row in rows(LIMITS)] == [row[0] for row in rows(REASONS)]
