"""Sphinx: `pip install ".[docs]" && sphinx-build -W docs docs/_build/html`."""

import os
import re
import sys
from pathlib import Path

import lacunar

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MPLBACKEND", "Agg")

project, author, release = "lacunar", "the lacunar developers", lacunar.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "gallery/*.ipynb", "**/*.zip", "sg_execution_times.rst"]
suppress_warnings = [
    "config.cache",
    "myst.xref_missing",  # pages link to source files, which the site does not hold
    "ref.ref",  # methods inherited from scikit-learn refer to its user guide
    "ref.term",
]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = "lacunar"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False

_HEAD = re.compile(r"[\w*,. ]+?( : |$)")  # a parameter's name in a numpydoc section, before its type


def _escaped(text):
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", part.replace("|", r"\|")) for part in parts[::2]]
    return "`".join(parts)


def _plain(app, what, name, obj, options, lines):
    """Docstrings are written to be read in a terminal: |x| and mean_ are no markup there."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            head = _HEAD.match(line)
            kept = head.end() if head else 0
            lines[number] = line[:kept] + _escaped(line[kept:])


def setup(app):
    app.connect("autodoc-process-docstring", _plain, priority=1)  # before numpydoc
