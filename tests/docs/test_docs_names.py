"""Names in the pages' code spans are those of the code: classes, functions, methods, fitted attributes, parameters, and the words that these take."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from public import exported
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils._param_validation import StrOptions

import lacunar
from lacunar.cli import parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("index.md", "what-takes-what.md"))]
PAGES += [*sorted((ROOT / "docs" / "user").glob("*.md"))]
PAGES = [page for page in PAGES if page.is_file()]
if not (ROOT / "docs" / "index.md").is_file():
    pytest.skip("the pages are not beside the tests", allow_module_level=True)

PUBLIC = {name.rpartition(".")[2]: item for name, item in exported()}
"""What modules list, by its name."""


def parameters(item):
    """Of a public function, or of a class and its public methods."""
    items = (
        [item]
        if inspect.isfunction(item)
        else [item, *(m for k, m in vars(item).items() if callable(m) and k[0] != "_")]
    )
    names = set()
    for one in items:
        try:
            names |= set(inspect.signature(one).parameters)
        except (TypeError, ValueError):
            continue
    return names


CALLABLES = {name: item for name, item in PUBLIC.items() if inspect.isclass(item) or inspect.isfunction(item)}
ALL_PARAMETERS = set().union(*(parameters(item) for item in CALLABLES.values()))
# Of `lacunar.compare`, whose keywords are the options of the command.
ALL_PARAMETERS |= {"sheet", "na_values"}
ALL_PARAMETERS |= {"NA_as_zero", "zero_as_missing"}  # of cmfrec and LightGBM, of which docs/user/comparison.md speaks
WITHOUT_RULES = set().union(*(parameters(item) for item in CALLABLES.values() if inspect.isfunction(item)))
"""Parameters of functions, whose words no table of constraints lists."""


def spans(text):
    """Code spans of a page outside of blocks, each with its line."""
    text = re.sub(r"^(```|~~~).*?^\1$|^<!-- python.*?^-->$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    return [(text.count("\n", 0, m.start()) + 1, m[1]) for m in re.finditer(r"(?<!`)`([^`\n]+)`(?!`)", text)]


def owner_of(node):
    """The public thing that an expression names; None for what is not ours, such as a table of the page."""
    if isinstance(node, ast.Name):
        return PUBLIC.get(node.id, lacunar if node.id == "lacunar" else None)
    if isinstance(node, ast.Attribute):
        owner = owner_of(node.value)
        return None if owner is None else getattr(owner, node.attr, None)
    return owner_of(node.func) if isinstance(node, ast.Call) else None


def wrong_call(call):
    """Keywords that the public class, function or method does not have."""
    item = owner_of(call.func)
    if not callable(item):
        return []
    signature = inspect.signature(item).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
        return []
    return [keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg not in signature]


def wrong_attribute(node):
    """Whether a public thing has no such part, fitted attributes that its docstring lists included."""
    owner = owner_of(node.value)
    if owner is None or (isinstance(node.value, ast.Call) and not inspect.isclass(owner)):
        return False
    listed = re.search(rf"^ *([\w, ]+, )?{node.attr}(, [\w, ]+)? :", inspect.getdoc(owner) or "", re.M)
    if hasattr(owner, node.attr) or listed:
        return False
    if inspect.ismodule(owner):
        try:
            importlib.import_module(f"{owner.__name__}.{node.attr}")
        except ImportError:
            return True
    return not inspect.ismodule(owner)


def wrong_words(keywords):
    """Words for a parameter that no class takes."""
    found = []
    for keyword in keywords:
        rules = [
            rule
            for item in CALLABLES.values()
            for rule in getattr(item, "_parameter_constraints", {}).get(keyword.arg, [])
        ]
        options = set().union(*(rule.options for rule in rules if isinstance(rule, StrOptions)))
        word = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if options and isinstance(word, str) and word not in options and keyword.arg not in WITHOUT_RULES:
            found.append(f"{keyword.arg}={word!r}")
    return found


def wrong(span):
    """What a code span says that the code does not have."""
    if re.match(r"--[a-z]", span):
        return [word for word in re.findall(r"--[a-z][a-z-]*", span) if word not in OPTIONS]
    span = re.sub(r", \.\.\.(?=[,)])", "", span)
    try:
        tree = ast.parse(span if not re.match(r"[a-z]\w* ?= ?[^=]", span) else f"_({span})", mode="eval")
    except SyntaxError:
        return []
    bad = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            bare = isinstance(node.func, ast.Name) and node.func.id == "_"
            bad += [k.arg for k in node.keywords if k.arg not in ALL_PARAMETERS] if bare else wrong_call(node)
            bad += wrong_words(node.keywords) if bare or owner_of(node.func) is not None else []
        elif isinstance(node, ast.Attribute) and wrong_attribute(node):
            bad.append(ast.unparse(node))
    return bad


def options(command):
    """Of the command and its subcommands."""
    flags = {flag for action in command._actions for flag in action.option_strings}
    for action in command._actions:
        for sub in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            flags |= options(sub)
    return flags


OPTIONS = options(parser())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_code_spans_are_there(page):
    found = [
        f"{line}: `{span}`: {bad}" for line, span in spans(page.read_text(encoding="utf-8")) if (bad := wrong(span))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_parameters_to_choose_are_parameters(page):
    """Items of "Choosing parameters" that begin with a name, as in "- **refine**: ..."."""
    text = page.read_text(encoding="utf-8")
    section = re.search(r"^## Choosing parameters\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    names = re.findall(r"^- \*\*([a-z]\w*)(?:=\w+)?\*\*", section[1], re.M) if section else []
    of_page = [PUBLIC[name] for name in set(re.findall(r"`~?lacunar[\w.]*\.(\w+)`", text)) if name in CALLABLES]
    known = set().union(*map(parameters, of_page)) if of_page else ALL_PARAMETERS
    assert not [name for name in names if name not in known]


def test_what_readme_says_works_in_pipelines_does():
    """All classes of its table but those of the last two lines."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\|[^|]*\|[^|]*\|([^|]*`[^|]*)\|[^|]*\|$", text, re.M)
    assert "All but those of the last two lines take arrays" in text
    assert re.findall(r"`(\w+)`", "".join(lines[-2:])) == ["ActivePOPCA", "MBEG", "OnlineMatrixClassifier"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = (X[:, 0] > 0).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    names = re.findall(r"`(\w+)`", "".join(lines[:-2]))
    assert len(names) > 6
    for name in names:
        quick = {"members": ["gaussian"]} if name.startswith("Lacunar") else {}
        make_pipeline(FunctionTransformer(), PUBLIC[name](**quick)).fit(X, y)


@pytest.mark.parametrize(
    ("span", "bad"),
    [
        ("POPCA(weights='auto')", ["weights"]),
        ("KarmaClassifier(gama=2, ...)", ["gama"]),
        ("KarmaClassifier(gamma=2, ...)", []),
        ("POPCA.imputes", ["POPCA.imputes"]),
        ("weights=3.5", []),
        ("wheights=3.5", ["wheights"]),
        ("masks='every'", ["masks='every'"]),
        ("--ragged skip", []),
        ("--raged skip", ["--raged"]),
        ("lacunar.papers.slrm.PrintedSLRM", []),
        ("lacunar.slrm", ["lacunar.slrm"]),
        ("model.predict(X)", []),
    ],
)
def test_what_is_not_there_is_found(span, bad):
    assert wrong(span) == bad
