"""The distribution that docs/extending.md shows, as if it were installed in a folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def install(folder: Path) -> Path:
    """Write the page's module and the metadata of its distribution into a folder to be put on the path."""
    page = PAGE.read_text()
    (project,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module = "\n\n".join(re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    folder.mkdir(exist_ok=True)
    (folder / "acme_weirflow.py").write_text(module)
    described = tomllib.loads(project)["project"]
    install_metadata(folder, described["name"], described["version"], described["entry-points"])
    return folder


def install_metadata(folder: Path, name: str, version: str, groups: dict[str, dict[str, str]]) -> None:
    """What an installer writes about a distribution with entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{one} = {value}" for one, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
