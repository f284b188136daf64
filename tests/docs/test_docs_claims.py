"""What the pages and the package say of missing entries is true: members of the one learner do complete rows.

The user fills nothing in; the linear members read means, the Gaussian and radial kernels rows that a model of the training rows completes. So no page may say that nothing is imputed. Of KARMA's kernels alone it holds.
"""

import re
from pathlib import Path

import pytest

import lacunar

ROOT = Path(__file__).parents[2]
PACKAGE = Path(lacunar.__file__).parent
FALSE = re.compile(
    r"\b(no (member|model|learner)s? (ever )?(imputes?|fills?|completes?)|(nothing|no (value|cell|entry|entries|number)s?) (is|are|was|were|gets?)?\s?(ever )?"
    r"(imputed|filled|completed)|(without|free of|avoids?|instead of|no|not?) (any )?(imputation|imputing|imputed|filling)|never (imputes?|fills?|completes?)|"
    r"(does|do) not (impute|complete|fill (missing|values|cells|gaps|entries|in\b))|imputation[- ]free)",
    re.IGNORECASE,
)
TRUE_OF_KARMA = {
    "python/lacunar/karma/classifier.py": "No value is filled",
    "python/lacunar/karma/regressor.py": "No value is filled",
    "docs/user/how-it-works.md": "without filling",  # of a kernel
}


def pages():
    yield from PACKAGE.rglob("*.py")
    yield from (path for path in (ROOT / "README.md", ROOT / "CITATION.cff", ROOT / "pyproject.toml") if path.is_file())
    yield from (path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
    yield from (ROOT / "examples").rglob("*.py")


def claims(text):
    return [" ".join(found[0].split()) for found in FALSE.finditer(re.sub(r"\s+#?\s*", " ", text))]


def test_no_page_says_that_nothing_is_imputed():
    found = {}
    for path in pages():
        inside = PACKAGE in path.parents
        name = f"python/lacunar/{path.relative_to(PACKAGE).as_posix()}" if inside else path.relative_to(ROOT).as_posix()
        wrong = [claim for claim in claims(path.read_text(encoding="utf-8")) if claim != TRUE_OF_KARMA.get(name)]
        if wrong:
            found[name] = wrong
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "No member imputes.", "nothing is imputed before learning", "Nothing imputed", "learns without imputing", "It never fills a cell", "no imputation",
        "without\n    # any imputation", "An imputation-free learner", "Models do not impute", "no value is ever filled in",
    ],
)  # fmt: skip
def test_such_claims_are_found(text):
    assert claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "You fill nothing in.",
        "You do not fill anything in first.",
        "Do I have to impute? No.",
        "gives imputation a flag",
    ],
)
def test_what_is_true_may_be_said(text):
    assert not claims(text)
