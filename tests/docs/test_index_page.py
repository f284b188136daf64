"""What the package index is given: links that lead there too, and workflows that run the code of others by hash only."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROVIDER, WORKFLOWS = ROOT / "src" / "index_page.py", ROOT / ".github" / "workflows"
if not PROVIDER.is_file() or not WORKFLOWS.is_dir():
    pytest.skip("the sources are not beside the tests", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def page():
    spec = importlib.util.spec_from_file_location("index_page", PROVIDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dynamic_metadata("readme", {})


def test_links_of_the_index_page_are_absolute_and_lead_to_files():
    prefix = re.escape(PROJECT["urls"]["Source"]) + rf"/(?:blob|raw)/v{re.escape(PROJECT['version'])}/"
    text = re.sub(r"^```.*?^```$", "", page()["text"], flags=re.M | re.S)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("#")]
    assert len(links) > 10
    assert "<a " not in text
    assert "<img" not in text
    assert not [link for link in links if not re.match(r"https?://", link)]
    own = [re.sub(prefix, "", link).split("#")[0] for link in links if re.match(prefix, link)]
    assert own
    assert not [path for path in own if not (ROOT / path).is_file()]


def test_the_index_page_shows_pictures_as_they_are():
    assert re.search(r"!\[[^\]]*\]\(https://[^)]*/raw/v", page()["text"])


@pytest.mark.parametrize("file", sorted(WORKFLOWS.glob("*.yml")), ids=lambda file: file.name)
def test_workflows_name_the_code_of_others_by_hash(file):
    used = re.findall(r"uses: *(\S+)(.*)", file.read_text(encoding="utf-8"))
    assert used
    assert not [name for name, rest in used if not re.search(r"@[0-9a-f]{40}$", name) or not re.match(r" # v\d", rest)]
