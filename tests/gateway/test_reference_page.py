"""Tests that the documentation page of translations agrees with the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from gateway.test_translation_table import CLUSTERS, dropped
from penstock.gateway.translation import fetch, produce, sasl
from penstock.protocol.api import API_TABLE

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_translations.py"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(TOOL.stem, TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    """The page's tables are current; ``python tools/write_translations.py`` updates them."""
    page = tool().PAGE.read_text(encoding="utf-8")
    assert page == tool().with_tables(page)


def test_the_page_names_all_that_4_dropped() -> None:
    tables = tool().parts()
    for cluster in CLUSTERS:
        for key, version in dropped(cluster):
            name = API_TABLE[key].name
            rows = [
                row.split(" | ")[1]
                for row in (tables["dropped"] + "\n" + tables["refusals"]).splitlines()
                if row.startswith(f"| {name} |")
            ]
            spans = [[int(number) for number in row.split("-")] for row in rows if row != "all"]
            assert "all" in rows or any(each[0] <= version <= each[-1] for each in spans), (name, version)


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    page = " ".join(tool().PAGE.read_text(encoding="utf-8").split())
    assert f"unpack to {produce.UNPACKED_BYTES_MAX >> 20} MiB and {produce.UNPACKED_RECORDS_MAX:,}" in page
    assert f"for {fetch.FETCH_BYTES_MAX >> 20} MiB at most" in page
    assert (
        f"with {fetch.BATCH_BYTES >> 20} MiB each, then by itself, for up to {fetch.CROWDED_OUT_MAX}" in page
    )
    assert f"first {sasl._HEAD_BYTES} bytes" in page
