"""Answers of small tables, kept so that a rearrangement of the code cannot change them unseen.

`python tests/golden/record.py write` adds cases that are not stored yet (what is stored already stays as it was).
`python tests/golden/record.py --bits FILE` writes every answer of this code to FILE, or, when FILE is there, compares with it bit
for bit. That holds on one machine only: BLAS differs between machines. `tests/contract/test_golden.py` compares to a tolerance.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
ANSWERS, PEOPLE = HERE / "answers.npz", HERE / "people.csv"
N, D = 24, 4
TERMS = (D + 1) ** 2  # of the longest sum of an answer: pairs of columns and a constant, more than the N stored rows
RING = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
GRAM = np.eye(6) + 0.5

# Name in CASES -> where the class is now and what it is called there. A class that moves or is renamed changes this line only.
CLASSES = {
    **{name: f"lacunar.karma.{name}" for name in (
        "KarmaClassifier", "KarmaRegressor", "KarmaClassifierCV", "KarmaRegressorCV",
        "KarmaOnlineClassifier", "KarmaOnlineRegressor")},
    "KarmaFeatures": "lacunar.karma.KarmaFeatures",
    "CategoryEncoder": "lacunar.encode.TableEncoder",
    "POPCA": "lacunar.lowrank.POPCA",
    **{name: f"lacunar.lowrank.{name}" for name in ("PETRELS", "GROUSE")},
    **{name: f"lacunar.lowrank.{name}" for name in (
        "LowRankImputer", "SLRMRegressor", "SLRMOnlineRegressor", "SLRMRegressorCV")},
    **{name: f"lacunar.active.{name}" for name in ("ActivePOPCA", "MBEG")},
    **{name: f"lacunar.papers.karma.{name}" for name in (
        "GeomClassifier", "MatrixCompletionClassifier", "MatrixCompletionRegressor")},
    **{name: f"lacunar.completion.{name}" for name in (
        "OnlineMatrixClassifier", "Identity", "Kernel", "KernelFunction", "Features", "Graph", "Mix")},
    "MatrixExponentiatedGradient": "lacunar.papers.completion.MatrixExponentiatedGradient",
    "TableModel": "lacunar.comparison.TableModel",
}  # fmt: skip
# Learned attributes that are compared where a model has them, and what each is called now.
ATTRIBUTES = {name: name for name in (
    "coef_", "intercept_", "components_", "mean_", "center_", "scale_", "explained_variance_", "noise_variance_",
    "dual_coef_", "best_gamma_", "best_C_", "n_components_", "lam1_", "alpha_", "n_mistakes_", "n_updates_",
)}  # fmt: skip
# The same for single classes of today: None where version 0.1.0 recorded no such attribute.
RENAMED: dict[str, dict[str, str | None]] = {
    "GeomClassifier": {"center_": "mean_", "mean_": None},
    **{
        f"MatrixCompletion{kind}": {"center_": "mean_", "mean_": None, "components_": None}
        for kind in ("Classifier", "Regressor")
    },
    **{
        name: {"center_": "mean_", "mean_": None}
        for name in (
            *("KarmaClassifier", "KarmaRegressor", "KarmaOnlineClassifier", "KarmaOnlineRegressor"),
            "KarmaFeatures",
        )
    },
    **{
        name: {"center_": "mean_", "mean_": None, "components_": None}
        for name in ("SLRMRegressor", "SLRMOnlineRegressor", "SLRMRegressorCV")
    },
}
# Verbs on rows, and what each is called now.
VERBS = ("predict", "predict_proba", "decision_function", "transform", "impute", "score_samples")


class Case(NamedTuple):
    """One fitted model: a name in CLASSES, its parameters, and the name of a way to fit in FITS."""

    cls: str
    params: dict[str, Any]
    fit: str
    rtol: float = 1e-6  # of a new fit, which another BLAS rounds otherwise
    dtype: type[np.floating[Any]] = np.float64  # in which it adds


def made(cls: str, /, **params: Any) -> Any:
    """An instance of a class of CLASSES."""
    module, _, name = CLASSES[cls].rpartition(".")
    return getattr(import_module(module), name)(**params)


def table() -> dict[str, NDArray[Any]]:
    """A table of low rank with a third of its entries missing, a row without any, targets of three kinds, and pairs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2)) @ rng.normal(size=(2, D)) + 0.1 * rng.normal(size=(N, D))
    y = X @ [1.0, -2.0, 0.0, 1.0]
    X[rng.random(X.shape) < 0.3] = np.nan
    X[3] = np.nan
    pairs = rng.integers(6, size=(2, 40))
    return {
        "X": X, "values": y, "labels": np.where(y > 0, "ja", "nein"), "three": np.digitize(y, [-1, 1]),
        "rows": pairs[0], "cols": pairs[1], "signs": rng.choice([-1, 1], 40),
    }  # fmt: skip


T = table()


def _stream(name: str, **options: Any) -> Callable[[Any], Any]:
    """Two halves of the table through `partial_fit`."""

    def fit(model: Any) -> Any:
        half = slice(0, N // 2), slice(N // 2, N)
        for part, more in zip(half, (options, {}), strict=True):
            model.partial_fit(T["X"][part], *([T[name][part]] if name else []), **more)
        return model

    return fit


def _asked(model: Any) -> Any:
    rng = np.random.default_rng(1)
    model.run(lambda indices: rng.normal(size=len(indices)), 20)
    model.ask(2)
    return model


def _of_people(model: Any) -> Any:
    from lacunar.comparison import load_problem

    return model.set_params(estimator=made("KarmaClassifier")).fit(load_problem(str(PEOPLE)))


def _people(columns: int = 5) -> NDArray[Any]:
    """The attributes of people.csv as objects: numbers, text, and None where a cell is empty."""
    with PEOPLE.open(encoding="utf-8") as lines:
        rows = [line[:columns] for line in csv.reader(lines)][1:]
    table = np.array([[cell or None for cell in row] for row in rows], dtype=object)
    for j in (0, 4):
        table[:, j] = [None if cell is None else float(cell) for cell in table[:, j]]
    return table


FITS: dict[str, Callable[[Any], Any]] = {
    **{name: (lambda model, name=name: model.fit(T["X"], T[name])) for name in ("labels", "three", "values")},
    "table": lambda model: model.fit(T["X"]),
    "stream of labels": _stream("labels", classes=["ja", "nein"]),
    "stream of values": _stream("values"),
    "stream": _stream(""),
    "pairs": lambda model: model.partial_fit(T["rows"].tolist(), T["cols"].tolist(), T["signs"]),
    "asked": _asked,
    "people": _of_people,
    "rows of people": lambda model: model.fit(_people()),
    "nothing": lambda model: model,
}
SEED = {"random_state": 0}
CASES: dict[str, Case] = {
    "karma": Case("KarmaClassifier", {}, "labels"),
    "karma-three": Case("KarmaClassifier", {"gamma": 3, "loss": "hinge"}, "three", rtol=1e-3),
    "karma-logistic": Case("KarmaClassifier", {"loss": "logistic"}, "labels", rtol=1e-3),
    "karma-square-hinge": Case("KarmaClassifier", {"loss": "squared_hinge"}, "labels", rtol=1e-3),
    "karma-crammer": Case("KarmaClassifier", {"loss": "crammer_singer"}, "three", rtol=1e-3),
    "karma-paper": Case("KarmaClassifier", {"normalize": None}, "labels", rtol=1e-3),
    "karma-primal": Case("KarmaClassifier", {"loss": "hinge", "solver": "primal", **SEED}, "three", rtol=1e-3, dtype=np.float32),
    "karma-online": Case("KarmaOnlineClassifier", {"gamma": 3, "loss": "hinge", "budget": 10**6, **SEED}, "labels", dtype=np.float32),
    "karma-stream": Case("KarmaOnlineClassifier", {"loss": "hinge"}, "stream of labels", dtype=np.float32),
    "karma-support-stream": Case("KarmaOnlineClassifier", {"gamma": 3, "loss": "hinge", "budget": 8}, "stream of labels", dtype=np.float32),
    "karma-r": Case("KarmaRegressor", {}, "values"),
    "karma-r-primal": Case("KarmaRegressor", {"gamma": 3, "solver": "primal", **SEED}, "values", rtol=1e-3),
    "karma-r-absolute": Case("KarmaOnlineRegressor", {"loss": "absolute", "budget": 10**6, "max_iter": 3, **SEED}, "values", dtype=np.float32),
    "karma-r-tube": Case("KarmaOnlineRegressor", {"loss": "epsilon_insensitive", "budget": 10**6, **SEED}, "values", dtype=np.float32),
    "karma-r-stream": Case("KarmaOnlineRegressor", {"budget": 10**6}, "stream of values", dtype=np.float32),
    "karma-race": Case("KarmaClassifierCV", {}, "labels", rtol=1e-4),
    "karma-race-plain": Case("KarmaClassifierCV", {"gammas": (1, 2), "Cs": (0.1, 1.0), "kernels": "karma", "cv": 2, **SEED}, "labels", rtol=1e-4),
    "karma-r-race": Case("KarmaRegressorCV", {}, "values", rtol=1e-4),
    "features": Case("KarmaFeatures", {}, "table"),
    "features-nystroem": Case("KarmaFeatures", {"gamma": 3, "method": "nystroem", "n_components": 5, **SEED}, "table", rtol=1e-3),
    "imputer": Case("LowRankImputer", {"n_components": 2, **SEED}, "table", rtol=1e-4),
    "imputer-auto": Case("LowRankImputer", SEED, "table", rtol=1e-4),
    "categories": Case("CategoryEncoder", {}, "table"),
    "categories-people": Case("CategoryEncoder", {}, "rows of people"),
    "categories-both": Case("CategoryEncoder", {"drop_binary": False}, "rows of people"),
    "table-model": Case("TableModel", {}, "people"),
    "popca": Case("POPCA", {"n_components": 2, **SEED}, "table", rtol=1e-5),
    "popca-holdout": Case("POPCA", {"n_components": "holdout", **SEED}, "table", rtol=1e-5),
    "popca-free": Case("POPCA", {"n_components": 2, "solver": "matrix-free", "refine": 0, **SEED}, "table", rtol=1e-5),
    "popca-stream": Case("POPCA", {"n_components": 2, "refine": 0, **SEED}, "stream"),
    "popca-robust": Case("POPCA", {"n_components": 2, "robust": "rows", "standardize": True, **SEED}, "table", rtol=1e-5),
    "petrels": Case("PETRELS", {"n_components": 2, **SEED}, "table"),
    "petrels-single": Case("PETRELS", {"n_components": 2, "precision": "float32", **SEED}, "table", rtol=1e-3),
    "petrels-shared": Case("PETRELS", {"n_components": 2, "correlation": "shared", **SEED}, "stream"),
    "grouse": Case("GROUSE", {"n_components": 2, **SEED}, "table"),
    "slrm": Case("SLRMRegressor", {"n_components": 2, **SEED}, "values", rtol=1e-4),
    "slrm-als": Case("SLRMRegressor", {"n_components": 2, "solver": "als", "lam1": 1.0, **SEED}, "values", rtol=1e-4),
    "slrm-stream": Case("SLRMOnlineRegressor", {"n_components": 2, **SEED}, "stream of values"),
    "slrm-stream-rows": Case("SLRMOnlineRegressor", {"n_components": 2, "correlation": "per-column", **SEED}, "stream of values"),
    "slrm-stochastic": Case("SLRMOnlineRegressor", {"n_components": 2, **SEED}, "values"),
    "slrm-cv": Case("SLRMRegressorCV", {"n_components": (1, 2), "cv": 2, **SEED}, "values", rtol=1e-4),
    "slrm-cv-cells": Case("SLRMRegressorCV", {"n_components": (1, 2), "over": "cells", **SEED}, "values", rtol=1e-4),
    "active": Case("ActivePOPCA", {"n_features": D, "n_components": 2, "n_observed": 3, **SEED}, "asked"),
    "active-design": Case("ActivePOPCA", {"n_features": D, "n_observed": 3, "strategy": "uniform", "normalisers": "design", **SEED}, "asked"),
    "mbeg": Case("MBEG", {"n_features": D, **SEED}, "asked"),
    "geom": Case("GeomClassifier", {"n_rounds": 2}, "labels", rtol=1e-3),
    "geom-poly": Case("GeomClassifier", {"n_rounds": 2, "kernel": "poly"}, "labels", rtol=1e-3),
    "mc1": Case("MatrixCompletionClassifier", {"lam": 1.0, "mu": 1e-2, **SEED}, "labels", rtol=1e-3),
    "mc1-r": Case("MatrixCompletionRegressor", {"max_iter": 50, **SEED}, "values", rtol=1e-3),
    "mcb": Case("MatrixCompletionClassifier", {"intercept": "bias", "max_iter": 50, **SEED}, "three", rtol=1e-3),
    "mcb-r": Case("MatrixCompletionRegressor", {"intercept": "bias", "lam": 1.0, "mu": 1e-2, **SEED}, "values", rtol=1e-3),
    "pairs": Case("MatrixExponentiatedGradient", {}, "pairs"),
    "pairs-kernel": Case("MatrixExponentiatedGradient", {"rows": ("Kernel", GRAM), "cols": ("Graph", RING)}, "pairs"),
    "pairs-features": Case("MatrixExponentiatedGradient", {"rows": ("Features", np.arange(12.0).reshape(6, 2)), "cols": ("Identity", 6)}, "pairs"),
    "pairs-conservative": Case("MatrixExponentiatedGradient", {"conservative": True, "step": 0.3, "cols": ("Graph", RING)}, "pairs"),
    "pairs-pool": Case("OnlineMatrixClassifier", {"rows": ("Features", np.arange(12.0).reshape(6, 2)), "cols": ("Graph", RING)}, "pairs"),
    "pairs-pool-kernel": Case("OnlineMatrixClassifier", {"rows": ("Kernel", GRAM)}, "pairs"),
    "pairs-function": Case("MatrixExponentiatedGradient", {"rows": ("KernelFunction", "gaussian", np.arange(12.0).reshape(6, 2))}, "pairs"),
}  # fmt: skip


def _side(given: Any) -> Any:
    """Side information of a case, written as its class and its first argument so that CASES imports nothing."""
    if not isinstance(given, tuple) or not given or given[0] not in CLASSES:
        return given
    if given[0] == "KernelFunction":
        return made("KernelFunction", f=given[1], points=given[2])
    if given[0] == "Graph":
        return made("Graph", adjacency=given[1], kind="pinv")  # the default then
    first = {"Kernel": "K", "Graph": "adjacency", "Features": "X", "Identity": "n"}[given[0]]
    return made(given[0], **{first: given[1]})


def fitted(name: str) -> Any:
    """A new fit of a case."""
    case = CASES[name]
    with warnings.catch_warnings(action="ignore"):  # convergence is not the subject here
        return FITS[case.fit](made(case.cls, **{key: _side(value) for key, value in case.params.items()}))


def answers(model: Any) -> dict[str, NDArray[Any]]:
    """What a model says of the table: every verb it has, and its learned attributes."""
    if hasattr(model, "ask"):
        result = model.result()
        return {key: np.asarray(getattr(result, key)) for key in ("mean_", "components_", "covariance_")}
    names = ATTRIBUTES | RENAMED.get(type(model).__name__, {})
    found = {key: np.asarray(getattr(model, now)) for key, now in names.items() if now and _plain(model, now)}
    with warnings.catch_warnings(action="ignore"):
        if hasattr(model, "decision_one"):
            question: Any = ([0, 1, 5, 4], [0, 5, 2, 3])
        elif type(model).__name__ == "TableModel":
            return {"predict": _of_table_model(model)}
        else:
            question = _people() if getattr(model, "n_features_in_", D) == 5 else T["X"]
        return found | {verb: _values(getattr(model, verb)(question)) for verb in VERBS if hasattr(model, verb)}


def _values(answer: Any) -> NDArray[Any]:
    """An answer as a plain array: dense where it is sparse, labels as text."""
    found = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
    return found.astype(str) if found.dtype == object else found


def _plain(model: Any, name: str) -> bool:
    value = getattr(model, name, None)
    return isinstance(value, np.ndarray | np.generic | float | int) and np.asarray(value).dtype.kind in "iufb"


def _of_table_model(model: Any) -> NDArray[Any]:
    from lacunar.comparison import read_table

    return _values(model.predict(read_table(str(PEOPLE)).frame))


def _leaves(bunch: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of a bunch and of the bunches in it, by their paths."""
    for key, value in bunch.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", leaf) for inner, leaf in _leaves(value))
        else:
            yield key, value


def function_answers() -> dict[str, NDArray[Any]]:
    """Small tables that the generators draw, and folds: what must not move although no model holds it."""
    from lacunar import datasets
    from lacunar.kernels import karma_kernel
    from lacunar.model_selection import ColdColumnKFold, ColdRowKFold, EntryKFold
    from lacunar.papers import completion, karma, slrm, subspace

    full = np.arange(24.0).reshape(6, 4) % 5
    pairs = np.column_stack([T["rows"], T["cols"]])
    bunches = {
        "biclustered": completion.make_biclustered((8, 6), n_clusters=(2, 2), graph_noise=0.1, random_state=0),
        "biclustered-code": completion.make_biclustered((8, 6), n_clusters=(2, 2), graph_noise=0.1, protocol="code", random_state=0),
        "block-margin": karma.make_block_margin(12, 20, 3, random_state=0),
        "sparse-regression": slrm.make_sparse_regression(16, 12, 3, n_nonzero=2, random_state=0),
        "subspace-regression": karma.make_subspace_regression(6, 5, 2, random_state=0),
        "coins": subspace.make_coins(6, 4, random_state=0),
        "hide-mcar": datasets.hide_mcar(full, 0.5, random_state=0),
        "hide-mar": datasets.hide_mar(full, 0.5, random_state=0),
        "hide-mnar": datasets.hide_mnar(full, 0.5, random_state=0),
        "hide-by-row": datasets.hide_by_row(full, np.linspace(0.2, 0.9, 6), random_state=0),
        "hide-blocks": datasets.hide_blocks(full, [[0, 1], [2, 3]], 0.5, random_state=0),
        "hide-panels": datasets.hide_panels(full, 2, random_state=0),
        "hide-all-but": datasets.hide_all_but(full, 2, random_state=0),
    }  # fmt: skip
    found = {
        f"{name}/{key}": _values(value)
        for name, bunch in bunches.items()
        for key, value in _leaves(bunch)
        if not isinstance(value, list)
    }
    found |= {f"kernel-{gamma}/gram": karma_kernel(T["X"], gamma=gamma) for gamma in (1, 2, 3)}
    for folds in (EntryKFold, ColdRowKFold, ColdColumnKFold):
        tests = [test for _, test in folds(3, random_state=0).split(pairs)]
        found |= {f"{folds.__name__}/{k}": test for k, test in enumerate(tests)}
    return {key: value for key, value in found.items() if value.dtype.kind in "biufU"}


def write() -> None:
    """Store what is not stored yet."""
    known = dict(np.load(ANSWERS, allow_pickle=False)) if ANSWERS.exists() else {}
    for name in CASES:
        if any(key.startswith(f"{name}/") for key in known):
            continue
        known |= {f"{name}/{key}": value for key, value in answers(fitted(name)).items()}
    known |= {f"functions/{key}": value for key, value in function_answers().items() if f"functions/{key}" not in known}
    np.savez_compressed(ANSWERS, **known)


def everything() -> dict[str, NDArray[Any]]:
    """Every answer of this code."""
    found = {f"{name}/{key}": value for name in CASES for key, value in answers(fitted(name)).items()}
    return found | {f"functions/{key}": value for key, value in function_answers().items()}


def bits(path: Path) -> int:
    """Write every answer, or compare with those written before. Returns the number of differences."""
    now = everything()
    if not path.exists():
        np.savez(path, **now)
        print(f"{len(now)} arrays written to {path}")
        return 0
    before = dict(np.load(path, allow_pickle=False))
    different = [
        key
        for key in sorted({*before, *now})
        if key not in now
        or key not in before
        or before[key].dtype != now[key].dtype
        or before[key].tobytes() != now[key].tobytes()
    ]
    print(f"{len(before)} arrays before, {len(now)} now, {len(different)} differ", *different, sep="\n  ")
    return len(different)


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        write()
    elif len(sys.argv) == 3 and sys.argv[1] == "--bits":
        sys.exit(min(bits(Path(sys.argv[2])), 1))
    else:
        sys.exit(__doc__)
