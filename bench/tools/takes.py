"""The table of docs/what-takes-what.md: what every public estimator takes, by trying it on a tiny table.

    python -m bench.tools.takes write    puts the table into the page
    python -m bench.tools.takes check    exit status 1 where the page is not what the classes say

A cell is "yes", or a word for what is answered, where the trial gives a right answer; "no" where it raises an error; "-" where the class has no target.
A trial that neither answers rightly nor raises stops the command: such a class fails silently.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier

import lacunar
from lacunar import Observed, load_model, save_model
from lacunar.completion import read_pair_batches
from lacunar.observed import ObservedFile, read_batches, write_batches

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-takes-what.md"
PLACE = re.compile(r"(<!-- takes -->\n).*?(<!-- /takes -->)", re.S)
REFUSALS = (TypeError, ValueError, AttributeError, NotImplementedError)
SHELL = {"TableModel"}  # of `lacunar compare`, which has names of learners for it

# Small models: what they take is the subject.
SETTINGS: dict[str, dict[str, Any]] = {
    "GROUSE": {"n_components": 2},
    "GaussianRegressor": {"max_iter": 3},
    "KarmaClassifierCV": {"kernels": "karma", "gammas": (1, 2), "Cs": (0.1, 1.0)},
    "KarmaRegressorCV": {"kernels": "karma", "gammas": (1, 2), "Cs": (0.1, 1.0)},
    "LacunarClassifier": {"members": ["logistic"], "cv": 2},
    "LacunarRegressor": {"members": ["gaussian", "boosting"], "cv": 2},
    "LowRankImputer": {"max_iter": 5},
    "MaskConformalClassifier": {"cv": 2},
    "MaskConformalRegressor": {"cv": 2},
    "MultipleImputer": {"n_imputations": 2, "sweeps": 2},
    "PETRELS": {"n_components": 2},
    "POPCA": {"n_components": 2},
    "SLRMRegressorCV": {"n_components": [1, 2], "cv": 2},
}

# -- the table that every class is tried on ---------------------------------------------------------------------------

_RNG = np.random.default_rng(0)
FULL = _RNG.normal(size=(40, 2)) @ _RNG.normal(size=(2, 4)) + 0.1 * _RNG.normal(size=(40, 4))
X = np.where(_RNG.random(FULL.shape) < 0.2, np.nan, FULL)
Y = np.column_stack([FULL[:, 0] - FULL[:, 1], FULL[:, 2]])
PAIRS = np.column_stack([np.repeat(np.arange(8), 5), np.tile(np.arange(5), 8)])
WEIGHT = np.where(np.arange(40) % 4 == 0, 1.0, 0.05)
GROUPS = np.arange(40) // 5
UNKNOWN = np.arange(40) % 5 == 0  # rows without a target


@dataclass(frozen=True)
class Trial:
    """A class and the table that fits it."""

    cls: type
    folder: Path = field(default=Path(), compare=False)

    @property
    def of_pairs(self) -> bool:
        return hasattr(self.cls, "add_row")

    @property
    def has_target(self) -> bool:
        return hasattr(self.cls, "predict")

    @property
    def of_labels(self) -> bool:
        return self.has_target and is_classifier(self.model())

    @property
    def X(self) -> Any:
        return PAIRS if self.of_pairs else X

    def y(self, columns: Any = 0) -> Any:
        """One target, or several, as numbers or labels."""
        return np.where(Y[:, columns] > 0, "yes", "no") if self.of_labels else Y[:, columns]

    def y_with_gaps(self, columns: Any = 0) -> Any:
        """The same without what is unknown, of other rows in each target."""
        y = self.y(columns).astype(object if self.of_labels else float)
        y[UNKNOWN if y.ndim == 1 else np.column_stack([UNKNOWN, UNKNOWN[::-1]])] = None if self.of_labels else np.nan
        return y

    def model(self) -> Any:
        seed = {"random_state": 0} if "random_state" in inspect.signature(self.cls).parameters else {}
        return self.cls(**seed, **SETTINGS.get(self.cls.__name__, {}))

    def fitted(self, X: Any = None, y: Any = None, **more: Any) -> Any:
        X = self.X if X is None else X
        return (
            self.model().fit(X, self.y() if y is None else y, **more)
            if self.has_target
            else self.model().fit(X, **more)
        )


def answer(model: Any, X: Any) -> Any:
    """Whatever the model says of rows, as numbers or labels."""
    if hasattr(model, "draws"):  # completed tables of the rows that it was fitted to
        return np.asarray(list(model.draws(X)))
    name = next(name for name in ("predict_proba", "predict", "transform") if hasattr(model, name))
    said = getattr(model, name)(X)
    return np.asarray(said.toarray() if sp.issparse(said) else said)


def is_whole(said: Any) -> bool:
    return not pd.isna(np.asarray(said, dtype=object)).any()


def needs_y(cls: Any) -> bool:
    """False where `fit` may go without: of a file, its own targets count."""
    return bool(inspect.signature(cls.fit).parameters["y"].default is inspect.Parameter.empty)


# -- the trials: a word where the class answers rightly, an error where it refuses ------------------------------------


def sparse(trial: Trial) -> str:
    """The same answer from what is observed as from the array with NaN."""
    rows = Observed.from_dense(X).to_scipy()
    model = trial.fitted(rows)
    assert np.allclose(answer(model, rows), answer(trial.fitted(X), X), atol=1e-6)
    return "yes"


def text(trial: Trial) -> str:
    """A frame with a column of words beside the numbers."""
    words = np.array(["red", "green", "blue", None], dtype=object)[np.arange(40) % 4]
    frame = pd.DataFrame(trial.X).rename(columns=str).assign(colour=words)
    if trial.of_pairs:
        frame = pd.DataFrame({"user": [f"u{i}" for i in PAIRS[:, 0]], "item": [f"i{j}" for j in PAIRS[:, 1]]})
    said = answer(trial.fitted(frame), frame)
    assert trial.cls.__name__ == "TableEncoder" or is_whole(said)  # an encoder leaves gaps
    return "yes"


def batches(trial: Trial) -> str:
    """Half of the rows, then the other half."""
    model, y = trial.model(), trial.y()
    for rows in (slice(0, 20), slice(20, 40)):
        classes = {"classes": ["no", "yes"]} if trial.of_labels and not trial.of_pairs else {}
        model.partial_fit(trial.X[rows], *((y[rows],) if trial.has_target else ()), **classes)
    assert is_whole(answer(model, trial.X))
    return "yes"


def weights(trial: Trial) -> str:
    assert not np.array_equal(answer(trial.fitted(sample_weight=WEIGHT), trial.X), answer(trial.fitted(), trial.X))
    return "yes"


def groups(trial: Trial) -> str:
    assert is_whole(answer(trial.fitted(groups=GROUPS), trial.X))
    return "yes"


def gaps_in_y(trial: Trial) -> str:
    if not trial.has_target:
        return "-"
    assert is_whole(answer(trial.fitted(y=trial.y_with_gaps()), trial.X))
    return "yes"


def several_targets(trial: Trial) -> str:
    if not trial.has_target:
        return "-"
    assert np.asarray(trial.fitted(y=trial.y([0, 1])).predict(trial.X)).shape == (40, 2)
    return "yes"


def gaps_in_several_targets(trial: Trial) -> str:
    """Rows that miss one target teach the others."""
    if not trial.has_target:
        return "-"
    said = np.asarray(trial.fitted(y=trial.y_with_gaps([0, 1])).predict(trial.X))
    assert said.shape == (40, 2)
    assert is_whole(said)
    return "yes"


def files(trial: Trial) -> str:
    """Rows that stay in a file: by batches, or block by block."""
    path = str(trial.folder / f"{trial.cls.__name__}.observed")
    if trial.of_pairs:
        signs = Observed.from_dense(np.where(X > 0, 1.0, -1.0))
        assert is_whole(answer(trial.model().fit_batches(read_pair_batches(signs, size=50)), PAIRS[:4]))
        return "yes"
    target = {"target": trial.y()} if trial.has_target else {}
    if hasattr(trial.cls, "fit_batches"):
        classes = {"classes": ["no", "yes"]} if trial.of_labels else {}
        model = trial.model().fit_batches(read_batches(Observed.from_dense(X), size=20, **target), **classes)
    else:
        numbers = {"target": Y[:, 0]} if trial.has_target else {}
        write_batches(path, read_batches(Observed.from_dense(X), size=20, **numbers))
        model = trial.fitted(ObservedFile(path)) if needs_y(trial.cls) else trial.model().fit(ObservedFile(path))
    assert is_whole(answer(model, X))
    return "yes"


def saved(trial: Trial) -> str:
    path, model = trial.folder / f"{trial.cls.__name__}.lacunar", trial.fitted()
    save_model(model, path)
    np.testing.assert_array_equal(answer(load_model(path), trial.X), answer(model, trial.X))
    return "yes"


def sets(trial: Trial) -> str:
    """How the class says how sure it is, beyond probabilities."""
    model = trial.fitted()
    if hasattr(model, "predict_set"):
        assert np.asarray(model.predict_set(trial.X, 0.8)).shape == (40, 2)
        return "sets"
    if hasattr(model, "predict_interval"):
        low, high = np.moveaxis(np.asarray(model.predict_interval(trial.X, 0.8)), -1, 0)
        assert (low < high).all()
        return "intervals"
    if "return_std" in inspect.signature(getattr(model, "predict", model.fit)).parameters:
        assert (model.predict(trial.X, return_std=True)[1] > 0).all()
        return "deviations"
    if hasattr(model, "draws"):
        assert len(list(model.draws())) > 1
        return "draws"
    return str(model.predict_interval(trial.X, 0.8))


def explained(trial: Trial) -> str:
    assert is_whole(trial.fitted().explain(trial.X[:2]).values)
    return "yes"


COLUMNS: dict[str, tuple[Callable[[Trial], str], str]] = {  # heading -> trial, what the error of a "no" speaks of
    "sparse": (sparse, r"(?i)sparse|dense|pairs|columns"),
    "text": (text, r"(?i)text|number|colour|string"),
    "`partial_fit`": (batches, "partial_fit"),
    "`sample_weight`": (weights, "sample_weight"),
    "`groups`": (groups, "groups"),
    "gaps in y": (gaps_in_y, r"\by\b|NaN|label"),
    "several targets": (several_targets, r"\by\b.*(one target|one model)"),
    "and gaps in them": (gaps_in_several_targets, r"\by\b.*(one target|one model|NaN)"),
    "files": (files, r"(?i)file|batches"),
    "`save_model`": (saved, "save"),
    "intervals, sets": (sets, "predict_interval"),
    "`explain`": (explained, "explain"),
}

# -- the table of answers ---------------------------------------------------------------------------------------------


def estimators() -> list[type]:
    """Every class with `fit` that a public module exports, but for `lacunar.papers`: the one learner, then by family."""
    names = [name for _, name, _ in pkgutil.iter_modules(lacunar.__path__) if name[0] != "_" and name != "papers"]
    modules = [importlib.import_module(f"lacunar.{name}") for name in sorted(names, key=lambda name: name != "learner")]
    exported = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    classes = [each for each in exported if inspect.isclass(each) and issubclass(each, BaseEstimator)]
    return [each for each in dict.fromkeys(classes) if hasattr(each, "fit") and each.__name__ not in SHELL]


def attempt(cls: type, heading: str, folder: Path) -> tuple[str, Exception | None]:
    """A cell, and the error that made it a "no"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (trial := Trial(cls, folder)).model()  # a mistake in SETTINGS is no refusal
        try:
            return COLUMNS[heading][0](trial), None
        except REFUSALS as refusal:
            return "no", refusal


def attempts() -> dict[tuple[str, str], tuple[str, Exception | None]]:
    with tempfile.TemporaryDirectory() as folder:
        return {
            (cls.__name__, heading): attempt(cls, heading, Path(folder)) for cls in estimators() for heading in COLUMNS
        }


def table(cells: dict[tuple[str, str], tuple[str, Exception | None]]) -> str:
    head = ["| class | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    names = dict.fromkeys(name for name, _ in cells)
    return "\n".join(head + [f"| `{n}` | " + " | ".join(cells[n, h][0] for h in COLUMNS) + " |" for n in names])


def page(cells: dict[tuple[str, str], tuple[str, Exception | None]]) -> str:
    return PLACE.sub(lambda m: f"{m[1]}\n{table(cells)}\n\n{m[2]}", PAGE.read_text(encoding="utf-8"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tools.takes", description=__doc__.split("\n\n")[0])
    parser.add_argument("verb", choices=["write", "check"])
    new = (parser.parse_args(arguments).verb, page(attempts()))
    if new[0] == "write":
        PAGE.write_text(new[1], encoding="utf-8")
        return 0
    if old := new[1] != PAGE.read_text(encoding="utf-8"):
        print("not what the classes say: run `python -m bench.tools.takes write`.", file=sys.stderr)
    return int(old)


if __name__ == "__main__":
    sys.exit(main())
