"""A model that learns in `fit` alone is asked while it is fitted: every answer is one of the old model or one of the new, at whatever moment."""

import inspect
import sys
import threading
from copy import deepcopy

import numpy as np
import public
import pytest
from faulty import LEARNERS, LIBRARY, problem, quiet
from sklearn.base import clone

from lacunar.comparison import TableModel
from lacunar.encode import TableEncoder
from lacunar.impute import Imputer, MultipleImputer
from lacunar.karma.selection import KernelSelection
from lacunar.learner import LacunarClassifier, LacunarRegressor
from lacunar.lowrank import SLRMRegressor
from lacunar.uncertainty import MaskConformalClassifier, MaskConformalRegressor

MODELS = {name: model for name, model in LEARNERS.items() if not hasattr(model, "partial_fit")} | {
    "lacunar": LacunarClassifier(members=["logistic"], cv=2, random_state=0),
    "lacunar-regressor": LacunarRegressor(members=["linear"], cv=2, random_state=0),
    "conformal": MaskConformalClassifier(LEARNERS["karma"], cv=2),
    "conformal-regressor": MaskConformalRegressor(LEARNERS["gaussian"], cv=2),
    "encoder": TableEncoder(),
    "filler": Imputer(),
    "multiple-imputer": MultipleImputer(2, sweeps=2),
}
QUESTIONS = (
    "predict",
    "predict_proba",
    "decision_function",
    "predict_interval",
    "predict_quantiles",
    "predict_set",
    "transform",
    "impute",
    "draws",
)
STOPS = 5  # moments of a call
(X, y), (OTHER, OTHER_Y) = problem(), problem(seed=3, n=30)
THREE = np.arange(30) % 3  # of three classes: another width of everything that is learned


def classes():
    """Public classes of estimators that learn in `fit` alone; of these two a model makes its own, in its fit."""
    learners = public.classes("fit", "get_params")
    return {cls for cls in learners if not hasattr(cls, "partial_fit")} - {TableModel, KernelSelection}


def test_every_class_that_learns_in_fit_alone_answers_whole():
    assert {type(model) for model in MODELS.values()} == classes()
    assert all(hasattr(cls, "_answers_whole") for cls in classes())


def test_no_class_that_learns_in_steps_does_without_a_lock():
    assert not any(
        hasattr(type(model), "_answers_whole") for model in LEARNERS.values() if hasattr(model, "partial_fit")
    )


class At:
    """Lets `act` run at some of the Python calls inside the package, by number."""

    def __init__(self, numbers, act):
        self.numbers, self.act, self.number = set(numbers), act, 0

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *raised):
        sys.settrace(None)

    def trace(self, frame, event, argument):
        if frame.f_code.co_filename.startswith(LIBRARY) and frame.f_code.co_name != "<genexpr>":
            self.number += 1
            if self.number in self.numbers:
                self.act()


def moments(act):
    """Numbers of some calls inside the package, from the first to the last that `act` makes."""
    with At((), None) as counted:
        act()
    return np.unique(np.linspace(1, counted.number, STOPS).astype(int)).tolist()


def dense(answer):
    answer = list(answer) if inspect.isgenerator(answer) else answer
    parts = answer if isinstance(answer, tuple | list) else (answer,)
    return [np.asarray(part.toarray() if hasattr(part, "toarray") else part) for part in parts]


def same(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and (x == y).all() for x, y in zip(a, b, strict=True))


def questions(model):
    return {
        name: lambda m, name=name: dense(getattr(m, name)(np.nan_to_num(X)))
        for name in QUESTIONS
        if hasattr(model, name)
    }


def other(name):
    return OTHER, OTHER_Y if name == "geom" else THREE  # which knows two classes


def fitted(name, first=True):
    return clone(MODELS[name]).fit(*((X, y) if first else other(name)))


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_is_of_one_model_whenever_another_fit_ends(name):
    """The first question beside a whole fit; the others where a fit ends, as `test_a_fit_under_way_shows_nothing` shows that it does."""
    with quiet():
        old, new = fitted(name), fitted(name, first=False)
        for k, (question, ask) in enumerate(questions(old).items()):
            answers = [ask(old), ask(new)]
            for number in moments(lambda: ask(old)):  # noqa: B023
                model = deepcopy(old)
                end = (lambda: setattr(model, "__dict__", dict(vars(new)))) if k else (lambda: model.fit(*other(name)))  # noqa: B023
                with At([number], end):
                    answer = ask(model)
                assert any(same(answer, known) for known in answers), f"{question} is torn at call {number}"
                assert same(ask(model), answers[1])


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_under_way_shows_nothing(name):
    with quiet():
        model, answers = fitted(name), []
        asked = questions(model)
        known = {question: ask(model) for question, ask in asked.items()}

        def ask_all():
            answers.extend((question, ask(model)) for question, ask in asked.items())

        with At(moments(lambda: fitted(name, first=False)), ask_all):
            assert model.fit(*other(name)) is model
    assert answers
    for question, answer in answers:
        assert same(answer, known[question]), question


@pytest.mark.parametrize("name", ["karma-cv", "features-nystroem", "slrm", "gaussian", "imputer"])
def test_threads_that_ask_get_whole_answers(name):
    with quiet():
        model = fitted(name)
        asked = questions(model)
        known = {question: [ask(model), ask(fitted(name, first=False))] for question, ask in asked.items()}
        stop, torn = threading.Event(), []

        def ask_on():
            while not stop.is_set():
                for question, ask in asked.items():
                    answer = ask(model)
                    torn.extend([] if any(same(answer, each) for each in known[question]) else [question])

        def safely():
            try:
                ask_on()
            except Exception as error:
                torn.append(repr(error))

        threads = [threading.Thread(target=safely) for _ in range(2)]
        for thread in threads:
            thread.start()
        for k in range(4):
            model.fit(*(other(name) if k % 2 == 0 else (X, y)))
        stop.set()
        for thread in threads:
            thread.join()
    assert not torn


def test_names_of_columns_are_those_of_the_answer():
    pytest.importorskip("pandas")
    wide, narrow = SLRMRegressor(2, random_state=0), SLRMRegressor(1, random_state=0)
    model = wide.set_output(transform="pandas").fit(X, y)
    narrow.fit(X, y)
    replaced = dict(vars(narrow), _sklearn_output_config={"transform": "pandas"})

    def replace():
        model.__dict__ = replaced

    for number in moments(lambda: model.transform(X)):
        model.__dict__ = dict(vars(clone(wide).set_output(transform="pandas").fit(X, y)))
        with At([number], replace):
            frame = model.transform(X)
        assert frame.shape in ((40, 2), (40, 1))
