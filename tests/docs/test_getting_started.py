"""The commands and files of "Getting started", as a reader copies and pastes them."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support.processes import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
BLOCK = re.compile(
    r"(?:^[^\n]*`(?P<file>\w+\.py)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Reader:
    """Pastes the blocks of a page, one after the other, into one shell, and files where the page says so."""

    def __init__(self, folder, *, path, replaced):
        self._folder = folder
        self._replaced = replaced
        self._before = ["set -e", f"export PATH={path}:$PATH" if path else ""]
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(("WEIRFLOW_", "PYTHON"))}

    def paste(self, section, *, own_python=None):
        """Run the blocks of a section; what the last commands print is what the page shows."""
        script, shown = list(self._before), []
        for block in BLOCK.finditer(section):
            text = block["text"]
            for old, new in self._replaced.items():
                text = text.replace(old, new)
            if block["kind"] == "python":
                assert block["file"], f"the page does not say what to save this as:\n{text}"
                (self._folder / block["file"]).write_text(text)
            elif block["kind"] == "sh":
                script.append(text)
            else:
                shown.append(text)
        env = self._env if own_python is None else {**self._env, "PYTHONPATH": own_python}
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self._folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for text in shown:
            assert text in done.stdout
        return done


def sections():
    """The page before its first heading, and behind each of its headings."""
    return re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)


def test_the_page_has_three_steps():
    assert [section.partition(".")[0] for section in sections()[1:4]] == ["1", "2", "3"]


@pytest.mark.parametrize("step", [1, 2])
def test_a_step_prints_what_the_page_shows(tmp_path, step):
    reader = Reader(tmp_path, path=Path(sys.executable).parent, replaced={"weirflow doctor\n": ""})
    done = reader.paste(sections()[step], own_python=str(ROOT / "src"))
    assert done.stderr == ""


@pytest.mark.campaign
def test_the_whole_page_in_an_empty_environment(tmp_path):
    """Installs the wheel of this repository, and all that it needs, from the registry that pip is set up with."""
    builder = tmp_path / "builder"
    venv.create(builder, with_pip=True)
    command = [builder / "bin" / "pip", "-q", "wheel", "--no-deps", "-w", tmp_path / "dist", ROOT]
    subprocess.run(command, check=True, timeout=600)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    folder = tmp_path / "reader"
    folder.mkdir()
    replaced = {
        "pip install 'weirflow[pandas]'": f"pip -q install '{wheel}[pandas]'",
        "pip install weirflow": f"pip -q install {wheel}",
        "7077": str(free_port()),
    }
    first, *steps = sections()
    Reader(folder, path=None, replaced=replaced).paste(first)
    reader = Reader(folder, path=folder / "env" / "bin", replaced=replaced)
    for step in steps[:3]:
        reader.paste(step)
