"""Write the tables of the gateway's translations into docs/reference/gateway-translations.md.

    python tools/write_translations.py

A test fails if the page does not match `penstock.gateway.translation.table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.gateway.translation.errors import OLDER
from penstock.gateway.translation.rules import TranslationRule
from penstock.gateway.translation.table import NEWEST, REFUSALS, RULES
from penstock.protocol.api import API_TABLE
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.releases import LAST_ZOOKEEPER, RELEASES, TRUNK

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "gateway-translations.md"
MARKS = ("dropped", "others", "refusals", "codes")


def dropped_by_4() -> dict[int, set[int]]:
    """Return for each API key the request versions that a release before 4.0 has and a later one lacks."""
    found: dict[int, set[int]] = {}
    for newer in RELEASES.values():
        if newer.numbers <= LAST_ZOOKEEPER or newer.name == TRUNK:
            continue
        for older in RELEASES.values():
            if older.numbers > LAST_ZOOKEEPER:
                continue
            for key, api in older.apis.items():
                now = newer.apis.get(key)
                for version in range(api.lowest, api.highest + 1):
                    if now is None or not now.lowest <= version <= now.highest:
                        found.setdefault(key, set()).add(version)
    return found


def span(versions: Iterable[int]) -> str:
    """Return a range of consecutive versions as a text such as ``0-2``."""
    listed = sorted(versions)
    low, high = listed[0], listed[-1]
    if high >= NEWEST:
        return f"{low} and newer" if low else "all"
    return str(low) if low == high else f"{low}-{high}"


def speakers(key: int, versions: set[int]) -> str:
    """Return the releases whose newest version of an API is one of these, as a text."""
    names = [
        each.name
        for each in RELEASES.values()
        if key in each.apis and each.apis[key].highest in versions and each.numbers <= LAST_ZOOKEEPER
    ]
    if not names:
        return "–"
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def row_of(rule: TranslationRule, versions: set[int], *more: str) -> tuple[str, ...]:
    done = rule.done[:1].upper() + rule.done[1:]
    target = span(range(rule.targets[0], rule.targets[1] + 1))
    return API_TABLE[rule.api_key].name, span(versions), *more, target, done, rule.inexact or "–"


def parts() -> dict[str, str]:
    """Return the tables, keyed by the name of the marker that encloses each in the page."""
    dropped = dropped_by_4()
    first, others = [], []
    seen: dict[int, set[int]] = {}
    for rule in RULES:
        mine = set(range(rule.versions[0], rule.versions[1] + 1))
        now = (mine & dropped.get(rule.api_key, set())) - seen.get(rule.api_key, set())
        if now:
            seen.setdefault(rule.api_key, set()).update(now)
            first.append(row_of(rule, now, speakers(rule.api_key, now)))
        elif not mine <= seen.get(rule.api_key, set()):
            others.append(row_of(rule, mine - seen.get(rule.api_key, set())))
    head = ("API", "Version", "Newest of", "Asked instead", "What is done", "What is not exact")
    refusals = [
        (API_TABLE[each.api_key].name, span(each.versions), f"{each.reason[:1].upper()}{each.reason[1:]}.")
        for each in REFUSALS
    ]
    codes = [(f"{int(new)} ({new.name})", f"{int(old)} ({old.name})") for new, old in sorted(OLDER.items())]
    rest = (
        "others that may be tried again",
        f"{int(ErrorCode.REQUEST_TIMED_OUT)} ({ErrorCode.REQUEST_TIMED_OUT.name})",
    )
    last = ("others", f"{int(ErrorCode.UNKNOWN_SERVER_ERROR)} ({ErrorCode.UNKNOWN_SERVER_ERROR.name})")
    return {
        "dropped": table(head, first),
        "others": table((*head[:2], *head[3:]), others),
        "refusals": table(("API", "Version", "Reason"), refusals),
        "codes": table(("The cluster answers", "The client gets"), [*codes, rest, last]),
    }


def with_tables(page: str) -> str:
    """Return the page with its tables replaced by current ones."""
    for mark, text in parts().items():
        begin, end = f"<!-- {mark}: python tools/write_translations.py -->", f"<!-- end of {mark} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
