"""Build the documentation as a static, searchable site.

    python tools/build_site.py [DIRECTORY]      build/site by default; open index.html

Pages have the paths that their files have in the repository, so that links work in both. Further pages are
made from the code: the options of client, broker and topics (`option_pages`), the commands (`command_pages`),
and the Python API. Any warning makes the build fail, for example a broken link, or a page that is in no table
of contents.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from command_pages import command_pages
from option_pages import option_pages

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "site"
DEFAULT = ROOT / "build" / "site"

PUBLIC = {
    "penstock.client": "Producers, consumers, admin: for asyncio, blocking, and by columns",
    "penstock.tables": "Topics and log directories as Arrow tables",
    "penstock.broker": "The broker",
    "penstock.testing": "A broker for tests, with faults on demand",
    "penstock.cloudevents": "CloudEvents on Kafka",
    "penstock.spark": "Spark: the data source's session, functions and sinks",
    "penstock.v07": "Kafka 0.7",
    "penstock.log": "Logs on disk and in memory",
    "penstock.errors": "Errors",
    "penstock.model": "Topics, partitions and offsets",
}
"""A dict from each module with public names to the title of its page."""

GUIDE = (
    "testing",
    "tables",
    "command-line",
    "broker",
    "groups",
    "exactly-once",
    "security",
    "cloudevents",
    "spark",
)
"""The how-to pages in the order in which most readers need them; all others follow by name."""

PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md")

FENCE_REMARK = re.compile(r"^```(\w+) [^\n`]*$", re.MULTILINE)
"""A pattern for a remark after the language of a code block, which is meant for the documentation tests."""


def gather(place: Path) -> None:
    """Write every page of the site into the directory `place`."""
    for page in sorted(found for pages in PAGES for found in ROOT.glob(pages)):
        name = page.relative_to(ROOT)
        if name.parts[:2] != ("docs", "site"):
            write(place / name, for_the_site(page.read_text(encoding="utf-8"), name.parent))
    shutil.copytree(ROOT / "docs" / "pictures", place / "docs" / "pictures")
    for file in (ROOT / "docs" / "reference").glob("*.json"):
        shutil.copy(file, place / "docs" / "reference" / file.name)
    for name, text in {**option_pages(), **command_pages()}.items():
        write(place / "docs" / "reference" / name, text)
    for name, text in api_pages().items():
        write(place / "docs" / "api" / name, text)
    write(place / "index.md", (SITE / "index.md").read_text(encoding="utf-8") + tables_of_contents(place))
    shutil.copy(SITE / "conf.py", place / "conf.py")
    shutil.copytree(SITE / "static", place / "static")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def for_the_site(text: str, folder: Path) -> str:
    """Return a page without remarks for tests.

    Links to files that are not pages of the site are replaced with the files' names.
    """

    def link(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        file = (ROOT / folder / target).resolve()
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        is_page = file.suffix == ".md" or file.is_relative_to(ROOT / "docs")
        if is_page or not file.exists():
            return match[0]
        return f"{match[1][1:-1]} (`{file.relative_to(ROOT).as_posix()}`)"

    return re.sub(r"(\[[^\]]*\])\(([^)\s]+)\)", link, FENCE_REMARK.sub(r"```\1", text))


def api_pages() -> dict[str, str]:
    """Return the pages of the Python API, which Sphinx makes from docstrings, keyed by file name."""
    pages = {}
    for module, title in PUBLIC.items():
        heading = f"{module}: {title}"
        pages[f"{module}.rst"] = f"{heading}\n{'=' * len(heading)}\n\n.. automodule:: {module}\n"
    listed = "".join(f"   {module}\n" for module in PUBLIC)
    title = "The Python API"
    pages["index.rst"] = f"{title}\n{'=' * len(title)}\n\n.. toctree::\n   :maxdepth: 2\n\n{listed}"
    return pages


def tables_of_contents(place: Path) -> str:
    """Return the site's tables of contents: begin, how to, reference and background."""
    docs = place / "docs"
    guides = {page.stem for page in (docs / "how-to").glob("*.md")}
    ordered = [name for name in GUIDE if name in guides] + sorted(guides - set(GUIDE))
    reference = sorted(page.stem for page in (docs / "reference").glob("*.md"))
    made = [*option_pages(), *command_pages()]
    first = [name.removesuffix(".md") for name in made]
    parts = {
        "Begin": ["README", "docs/tutorial"],
        "How to": [
            *(f"docs/how-to/{name}" for name in ordered),
            *sorted(str(page.relative_to(place).with_suffix("")) for page in place.glob("examples/**/*.md")),
        ],
        "Reference": [
            *(f"docs/reference/{name}" for name in first),
            *(f"docs/reference/{name}" for name in reference if name not in first),
            "docs/api/index",
        ],
        "Background": [
            "ARCHITECTURE",
            "docs/limitations",
            *sorted(
                f"docs/reference/limitations/{page.stem}" for page in docs.glob("reference/limitations/*.md")
            ),
            "docs/decisions/README",
            *sorted(f"docs/decisions/{page.stem}" for page in (docs / "decisions").glob("0*.md")),
            *sorted(
                page.stem
                for page in place.glob("*.md")
                if page.stem not in ("README", "ARCHITECTURE", "index")
            ),
        ],
    }
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in parts.items()
    )


def build(place: Path) -> int:
    """Build the site into a directory and return Sphinx' exit code."""
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory(prefix="penstock-site-") as folder:
        source = Path(folder) / "source"
        gather(source)
        return build_main(["-W", "--keep-going", "-q", "-b", "html", str(source), str(place)])


if __name__ == "__main__":
    destination = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    code = build(destination)
    if not code:
        print(f"the site is in {destination}; open {destination / 'index.html'}")
    raise SystemExit(code)
