"""Sphinx: `pip install ".[docs]" && sphinx-build -W docs docs/_build/html`."""

import re
import runpy
import sys
from importlib.metadata import metadata
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from threadpoolctl import threadpool_limits

import lacunar

matplotlib.use("Agg")
threadpool_limits(1)  # examples are small, and BLAS threads wait for one another on a busy machine

sys.path.insert(0, str(Path(__file__).parent))
from markup import llms_txt, within_reach  # noqa: E402

project, author, release = "lacunar", "the lacunar developers", lacunar.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
copybutton_selector = "div:not(.highlight-output):not(.highlight-text):not(.highlight-none) > div.highlight pre"
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True
html_math_renderer = "mathml"  # drawn by the browser itself: neither a script nor a font comes from elsewhere
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "**/*.zip", "**/sg_execution_times.rst"]
suppress_warnings = [
    "config.cache",
    "myst.xref_missing",  # pages link to source files, which the site does not hold
    "ref.ref",  # methods inherited from scikit-learn refer to its user guide
    "ref.term",
]

autosummary_generate = True
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

_READING_ORDER = [
    "five_minutes",
    "who_answered",
    "blocks_of_columns",
    "either_way",
    "more_missing_values",
    "completion_or_not",
    "back_to_columns",
    "components_with_missing_values",
    "paying_for_entries",
    "sensors_that_move",
    "stream_of_rows",
    "rows_on_many_machines",
    "like_or_not",
    "communities",
]


def reading_order(file):
    """Place of an example in the gallery; new ones come last."""
    name = Path(file).stem
    return _READING_ORDER.index(name) if name in _READING_ORDER else len(_READING_ORDER)


_LOOK = {
    "font.size": 12,
    "figure.figsize": (5.6, 3.2),
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def large_letters(gallery_conf, file):
    """Pictures of the gallery are read as thumbnails as well."""
    matplotlib.rcParams.update(_LOOK)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "reset_modules": ("matplotlib", large_letters),
    "thumbnail_size": (600, 420),
    "gallery_dirs": "gallery",
    "within_subsection_order": reading_order,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("lacunar",),
    "inspect_global_variables": False,
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "lacunar"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["_static"]
html_css_files = ["lacunar.css"]
html_sidebars = {"index": [], "user/install": [], "gallery/five_minutes": []}
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


def _skip(app, what, name, obj, skip, options):
    """scikit-learn's requests for metadata are a dozen methods a class, the same for all."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def _formula(block):
    def visit(writer, node):
        writer.body.append(convert(node.astext(), display="block" if block else "inline"))
        raise SkipNode

    return visit, None


def _pictures(app):
    """Each script of docs/pictures leaves one figure, which is saved beside it for the pages to show."""
    for script in sorted(Path(app.srcdir, "pictures").glob("*.py")):
        with matplotlib.rc_context(_LOOK | {"svg.hashsalt": script.stem}):
            runpy.run_path(str(script))
            plt.savefig(script.with_suffix(".svg"), metadata={"Date": None})
            plt.close("all")


def _reach(app, page, template, context, doctree):
    if "body" in context:
        context["body"] = within_reach(context["body"])


def _llms(app, exception):
    """llms.txt: what the site holds, page by page."""
    if exception is None and app.builder.name == "html":
        env = app.env
        titles = {page: title.astext() for page, title in env.titles.items()}
        text = llms_txt(project, metadata(project)["Summary"], "index", env.toctree_includes, titles)
        Path(app.outdir, "llms.txt").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", _reach)
    app.connect("build-finished", _llms)
    app.connect("builder-inited", _pictures)
    app.add_html_math_renderer("mathml", _formula(False), _formula(True))
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _plain, priority=1)  # before numpydoc
