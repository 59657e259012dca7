"""The docs as a site: built strictly, whole, and without anything from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(https?:)?//|<link[^>]*rel=\"?stylesheet[^>]*(https?:)?//"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "https_proxy": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
        },
        check=True,
        timeout=300,
    )
    return folder


def test_every_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    named = {page.with_name("index") if page.name == "README" else page for page in pages}
    assert named - built == set()


def test_pages_fetch_nothing_from_elsewhere(site):
    wrong = [path.name for path in site.rglob("*.html") if FETCHED.search(path.read_text())]
    assert wrong == []
    assert "fonts.googleapis" not in (site / "index.html").read_text()


def test_pages_of_the_menu_are_all_pages_but_decisions():
    menu = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {f"{name}" for name in menu if not (ROOT / "docs" / name).exists()} == set()
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - menu == set()


def test_decisions_are_listed():
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((0[\w-]+\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


def shown(cell):
    """What a cell has put out, as text."""
    return [out.get("text") or out["data"]["text/plain"] for out in cell.get("outputs", [])]


@pytest.mark.parametrize(
    "path",
    # What the one about streams shows is on a page, too, which runs each time.
    [pytest.param(path, marks=[pytest.mark.campaign] if path.stem == "streams" else []) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_and_puts_out_what_it_shows(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    expected = [shown(cell) for cell in book.cells]
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert [shown(cell) for cell in book.cells] == expected


def test_there_are_three_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["first-views", "processes", "streams"]
