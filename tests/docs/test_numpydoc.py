"""Docstrings of all public names hold what numpydoc asks for, but for the checks listed here with the reason."""

import inspect

import pytest
from public import classes, documented

validate = pytest.importorskip("numpydoc.validate").validate

IGNORED = {
    "EX01": "classes and functions have examples; their methods are shown there",
    "ES01": "a summary that says everything needs no second paragraph",
    "SA01": "only where there is something to see",
    "GL01": "summaries begin on the first line",
    "GL02": "and one-line docstrings end there",
    "GL03": "as above",
    "SS02": "names of letters and symbols keep their case",
    "SS05": "'progress', 'rows': nouns that end in s",
    "SS06": "some summaries take two lines",
    "PR03": "parameters that are explained together stand together",
    "PR04": "'rows, cols : ...' of completion are typed in words",
    "PR05": "sentences end with a dot, types do not",
    "PR06": "'integer' is said of indices",
    "PR07": "the type and shape say all of X, y, random_state and n_jobs",
    "PR08": "names of letters and symbols keep their case",
    "PR09": "a type alone has no dot",
    "RT02": "results are named, as formulas refer to them",
    "RT03": "the type and shape often say all",
    "RT04": "names of letters and symbols keep their case",
    "YD01": "iterators are documented by what they give, as Returns or as Yields",
    "RT05": "a shape alone has no dot",
}


ONE_SENTENCE = {  # names whose docstring is one sentence with the shapes in it, and why: neither parameters nor returns apart
    "lacunar.comparison.": "what the command is made of; users call the command",
    "lacunar.distributed.": "options go to functions that document them",
    "lacunar.karma.selection.": "what chooses kernels for the searches of KARMA and for the learner, which document what they choose",
    "lacunar.karma.solvers.": "engines behind the estimators, which document the same words",
    "lacunar.kernels.KernelForm": "for those who add a kernel; the page on that says what is what",
    "lacunar.kernels.compute_grams": "the same",
    "lacunar.completion.Predictiveness": "a record that its docstring explains in sentences",
}
PROTOCOL = ("begin", "plain", "resume", "undone")  # called by the engine of completion, and by fits of streams
RECORDS = {  # fields are explained as attributes, or by the summary: nobody but the library fills them in
    "lacunar.active.ActiveSubspace",
    "lacunar.active.Request",
    "lacunar.impute.PooledResult",
    "lacunar.observed.Columns",
    "lacunar.uncertainty.Measurement",
    "lacunar.uncertainty.MissingnessReport",
    "lacunar.observed.Triplets",
    "lacunar.lowrank.PairSums",
}


def faults_of(name):
    """Errors of numpydoc that are not left out here."""
    try:
        found = validate(name)["errors"]
    except (ImportError, AttributeError):  # methods that a class has on some conditions only
        return []
    short = name.startswith(tuple(ONE_SENTENCE)) or name.endswith(PROTOCOL) or name in RECORDS
    ignored = IGNORED.keys() | ({"PR01", "PR02", "RT01"} if short else set())
    ignored |= {"RT01"} if name.rpartition(".")[2].startswith("read_") else set()  # they yield
    return [each for each in found if each[0] not in ignored]


def test_docstrings():
    assert not {name: faults for name in sorted({name for name, *_ in documented()}) if (faults := faults_of(name))}


def bare_names(item):
    """Parameters and attributes of a class that its docstring lists without a description."""
    sections = pytest.importorskip("numpydoc.docscrape").NumpyDocString(inspect.getdoc(item))
    return [part.name for kind in ("Parameters", "Attributes") for part in sections[kind] if not "".join(part.desc)]


def test_estimators_describe_every_parameter_and_attribute():
    assert not {item.__name__: names for item in classes("get_params") if (names := bare_names(item))}
