"""README.md as the package index shows it: links into this repository become absolute, badges go. Read by the build only."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RELATIVE = re.compile(r"(\]\()(?![a-z]+:|#)")  # of a Markdown link or picture


def dynamic_metadata(field: str, settings: dict[str, Any], *_: Any) -> dict[str, str]:
    """The field `readme` of the metadata, as scikit-build-core asks its providers for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {"content-type": "text/markdown", "text": absolute(text, project["urls"]["Source"], project["version"])}


def absolute(text: str, source: str, version: str) -> str:
    """`text` with links to the files of a version, pictures as they are, and neither badges nor comments."""
    text = re.sub(r"^<!--.*?-->\n|^<a [^\n]*</a>\n", "", text, flags=re.M | re.S)
    text = re.sub(r"!\[([^\]]*)\]\((?![a-z]+:)", rf"![\1]({source}/raw/v{version}/", text)
    return RELATIVE.sub(rf"\1{source}/blob/v{version}/", text)
