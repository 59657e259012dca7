"""Every Python block of README and docs runs, page by page, and prints what the page says it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.extension_page import install
from support.page_runner import PageRunner

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COPIED = {"getting-started.md"}
"""Run as they are copied and pasted, by a test of their own."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ITS_OWN_SPARK = {"catalogs.md", "connecting.md", "flow-streams.md", "materialized-views.md", "server.md"}
"""With a folder, catalogs or connectors: nobody else can have their Spark."""
END_OF_BLOCK = "~~~ end of block ~~~"


def python_blocks(page: Path) -> list[tuple[str, str | None]]:
    """Each python block with the text block right behind it, which is what it must print."""
    blocks = [(match.group(1), match.group(2)) for match in BLOCK.finditer(page.read_text())]
    pairs = zip(blocks, [*blocks[1:], ("", "")], strict=False)
    return [
        (code, shown if next_kind == "text" else None) for (kind, code), (next_kind, shown) in pairs if kind == "python"
    ]


@pytest.fixture(scope="module")
def runner(tmp_path_factory, postgres):
    folder = tmp_path_factory.mktemp("pages")
    extensions = install(folder / "extensions")
    paths = os.pathsep.join(filter(None, [str(extensions), os.environ.get("PYTHONPATH")]))
    variables = {"DATABASE_URL": postgres.make_database(), "PYTHONPATH": paths}
    with PageRunner(folder, variables) as running:
        yield running


@pytest.mark.parametrize(
    "page",
    sorted(
        [page for page in PAGES[1:] if python_blocks(page) and page.name not in COPIED],
        key=lambda page: page.name in ITS_OWN_SPARK,
    ),
    ids=lambda page: page.name,
)
def test_the_page_runs_and_prints_what_it_shows(page, runner):
    blocks = python_blocks(page)
    printed = runner.run([code for code, _ in blocks], own_spark=page.name in ITS_OWN_SPARK)
    for (_, shown), out in zip(blocks, printed, strict=True):
        assert shown is None or out == shown


def test_the_readme_runs_as_a_script_and_prints_what_it_shows(tmp_path):
    blocks = python_blocks(PAGES[0])
    script = "".join(f"{code}\nprint({END_OF_BLOCK!r})\n" for code, _ in blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{END_OF_BLOCK}\n")
    for (_, shown), out in zip(blocks, printed, strict=False):
        assert shown is None or out == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in links, as GitHub makes it of their text."""
    text = BLOCK.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", one).lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_to_one(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    assert [(target.name, anchor) for target, anchor in targets if anchor not in anchors(target)] == []


def test_the_demo_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "demo.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tick 2: order_totals   -1  ann   30" in done.stdout
    assert "kill -9" in done.stdout
    assert "Checked: a batch query of Spark" in done.stdout
