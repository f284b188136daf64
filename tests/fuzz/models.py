"""A small fitted model of every class that a model file may name, in every form that keeps other state; and ways to use one."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lacunar import Observed
from lacunar.active import MBEG, ActivePOPCA
from lacunar.comparison import TableModel, load_problem
from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, Mix, OnlineMatrixClassifier
from lacunar.encode import TableEncoder
from lacunar.karma import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaFeatures,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
)
from lacunar.learner import LacunarClassifier, LacunarRegressor
from lacunar.lowrank import (
    GROUSE,
    PETRELS,
    POPCA,
    GaussianRegressor,
    LowRankImputer,
    SLRMOnlineRegressor,
    SLRMRegressor,
    SLRMRegressorCV,
)
from lacunar.papers.completion import MatrixExponentiatedGradient, PrintedMEG
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM
from lacunar.papers.subspace import PrintedMBEG, PrintedPOPCA
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty import MaskConformalClassifier, MaskConformalRegressor

N, D = 24, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)) @ RNG.normal(size=(2, D))
Y = X @ [1.0, -2.0, 0.0, 1.0]
X[RNG.random(X.shape) < 0.3] = np.nan
LABELS = np.where(Y > 0, "ja", "nein")
THREE = np.digitize(Y, [-1, 1])
PEOPLE = pd.DataFrame(
    {"n": [1.0, np.nan, 3.0], "c": ["u", "v", None], "day": ["2026-03-31", None, "2026-04-01"], "id": list("abc")}
)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(town=np.resize(["u", "v", "w", None], N))
GRAM = np.eye(6) + 0.5
RING = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)


def completed(learner: Any = OnlineMatrixClassifier, **options: Any) -> Any:
    """One that has seen some pairs of a 6 x 6 table."""
    rows, cols = RNG.integers(6, size=(2, 30)).tolist()
    return learner(**options).partial_fit(rows, cols, RNG.choice([-1, 1], 30))


def asked(model: Any) -> Any:
    """One with a request that was not answered yet."""
    model.run(lambda indices: RNG.normal(size=len(indices)), 20)
    model.ask(2)
    return model


def table_model() -> TableModel:
    return TableModel(KarmaClassifier()).fit(load_problem(None))


MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "karma": {
        "gram": lambda: KarmaClassifier().fit(X, LABELS),
        "three": lambda: KarmaClassifier(gamma=3, loss="hinge").fit(X, THREE),
        "cosine": lambda: KarmaClassifier(indicators=True, normalize="cosine").fit(X, LABELS),
        "primal": lambda: KarmaClassifier(2, loss="hinge", solver="primal", random_state=0).fit(X, THREE),
        "online": lambda: KarmaOnlineClassifier(2.5, random_state=0).fit(X, LABELS),
        "stream": lambda: KarmaOnlineClassifier().partial_fit(X, LABELS, classes=["ja", "nein"]),
        "regressor": lambda: KarmaRegressor(2.5).fit(X, Y),
        "tube": lambda: KarmaOnlineRegressor(loss="epsilon_insensitive", budget=10**6, random_state=0).fit(X, Y),
        "classifier cv": lambda: KarmaClassifierCV(gammas=[1, 2], Cs=[1.0], cv=2).fit(X, LABELS),
        "auto": lambda: KarmaClassifierCV(gammas=[1, 2], Cs=[1.0], cv=2, kernels="auto", average=2).fit(X, LABELS),
        "regressor cv": lambda: KarmaRegressorCV(gammas=[1, 2], Cs=[1.0], cv=2).fit(X, Y),
        "unfitted": lambda: KarmaClassifier(class_weight={"ja": 2.0}),
        "features": lambda: KarmaFeatures(2).fit(X),
        "nystroem": lambda: KarmaFeatures(2.5, method="nystroem", n_components=5, random_state=0).fit(X),
        "imputer": lambda: LowRankImputer(2).fit(X),
        "table": table_model,
        "encoder": lambda: TableEncoder().fit(PEOPLE),
        "encoder of codes": lambda: TableEncoder(categories="ordinal", text="drop", max_categories=2).fit(PEOPLE),
    },
    "subspace": {
        "popca": lambda: POPCA(2, random_state=0).fit(X),
        "free": lambda: POPCA(2, solver="matrix-free", refine=0, random_state=0).fit(X),
        "stream": lambda: POPCA(2, refine=0, random_state=0).partial_fit(X),
        "slrm": lambda: SLRMRegressor(2, random_state=0).fit(X, Y),
        "als": lambda: SLRMRegressor(2, solver="als", random_state=0).fit(X, Y),
        "slrm stream": lambda: SLRMOnlineRegressor(2, random_state=0).partial_fit(X, Y),
        "slrm rows": lambda: SLRMOnlineRegressor(2, correlation="per-column", random_state=0).partial_fit(X, Y),
        "slrm paper": lambda: PrintedSLRM(2, gamma=0.99, max_iter=2, random_state=0).fit(X, Y),
        "slrm cv": lambda: SLRMRegressorCV([1, 2], cv=2, random_state=0).fit(X, Y),
        "mpcr": lambda: MPCR(2, random_state=0).fit(X, Y),
        "smpcr": lambda: SMPCR(2, random_state=0).fit(X, Y),
        "petrels": lambda: PETRELS(2, random_state=0).fit(X),
        "petrels rows": lambda: PETRELS(2, correlation="per-column", precision="float32", random_state=0).fit(X),
        "petrels shared": lambda: PETRELS(2, correlation="shared", random_state=0).fit(X),
        "popca printed": lambda: PrintedPOPCA(2).fit(X),
        "grouse": lambda: GROUSE(2, random_state=0).fit(X),
    },
    "active": {
        "popca": lambda: asked(ActivePOPCA(D, 2, 3, random_state=0)),
        "uniform": lambda: asked(ActivePOPCA(D, 2, 3, strategy="uniform", normalisers="design", random_state=0)),
        "mbeg": lambda: asked(MBEG(D, 2, random_state=0)),
        "mbeg printed": lambda: asked(PrintedMBEG(D, 2, m=10**5, random_state=0)),
        "mbeg all": lambda: asked(MBEG(D, 1, 4, pairs="all", alpha=0.5, refresh=4, random_state=0)),
    },
    "completion": {
        "nothing": completed,
        "kernels": lambda: completed(rows=Kernel(GRAM), cols=Kernel(GRAM, ids=list(range(6)))),
        "features": lambda: completed(rows=Features(X[:6, :2], own=0.2, const=0.1), cols=Identity(6)),
        "mixed": lambda: completed(rows=Mix(Kernel(GRAM)), cols=Graph(RING, kind="pinv")),
        "sparse graph": lambda: completed(cols=Graph(RING, method="sparse", kind="pinv")),
        "function": lambda: completed(rows=KernelFunction(points=np.arange(12.0).reshape(6, 2))),
        "gradient": lambda: completed(MatrixExponentiatedGradient, conservative=True, step=0.3),
        "printed": lambda: completed(PrintedMEG, eta=1.5, gamma=0.5, D=4.0, m=6, n=6, random_state=0),
        "graph": lambda: Graph(RING, "pd", ids=np.arange(6) * 10),
        "mix": lambda: Mix(Features(X[:5, :2]), info=0.5, const=0.3, own=0.2),
        "partition": lambda: KernelFunction("partition", points=np.array(["u", "v", "u"])),
    },
    "learner": {
        "classifier": lambda: LacunarClassifier(cv=2).fit(X, LABELS),
        "three": lambda: LacunarClassifier(members=["logistic", "boosting"], cv=2).fit(X, THREE),
        "frame": lambda: LacunarClassifier(members=["forest", "gaussian"], cv=2).fit(FRAME, LABELS),
        "regressor": lambda: LacunarRegressor(cv=2).fit(X, np.c_[Y, -Y]),
        "gaussian": lambda: GaussianRegressor().fit(X, Y),
        "intervals": lambda: MaskConformalRegressor(cv=2).fit(X, Y),
        "sets": lambda: MaskConformalClassifier(cv=2).fit(X, LABELS),
    },
    "baselines": {
        "geom": lambda: GeomClassifier(n_rounds=2).fit(X, LABELS),
        "mc-1": lambda: MatrixCompletionClassifier(max_iter=5).fit(X, LABELS),
        "mc-1 regressor": lambda: MatrixCompletionRegressor(max_iter=5).fit(X, Y),
        "mc-b": lambda: MatrixCompletionClassifier("bias", max_iter=5).fit(X, LABELS),
        "mc-b regressor": lambda: MatrixCompletionRegressor("bias", max_iter=5).fit(X, Y),
    },
}  # fmt: skip


def files(family: str) -> list[bytes]:
    """The model files of a family."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is not the subject here
        found = []
        for make in MODELS[family].values():
            save_model(make(), Path(folder) / "m")
            found.append((Path(folder) / "m").read_bytes())
    return found


def use(model: Any) -> None:
    """All that somebody does with a model that was loaded."""
    if isinstance(model, OnlineMatrixClassifier):
        _complete(model)
    elif isinstance(model, ActivePOPCA | MBEG):
        with learning():
            for request in model.ask(2):
                model.tell(request, np.ones(len(request.indices)))
            model.result()
    elif isinstance(model, TableEncoder):
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            model.transform(pd.DataFrame({name: [1.0, None] for name in names[:20]}))
            model.get_feature_names_out(), model.is_categorical_
    elif isinstance(model, TableModel):
        names = model.encoder_.feature_names_in_[:2]
        model.predict(pd.DataFrame({names[0]: [1.0, np.nan], names[1]: ["x", None]}))
    elif hasattr(model, "begin"):
        with learning():  # settings only: `begin` is where they are checked
            side = model.begin()
            if 0 < (side.size or 0) < 1000:
                side.dense()
    elif 0 < (getattr(model, "n_features_in_", None) or 0) < 10_000:
        _on_rows(model, model.n_features_in_)


def _complete(model: OnlineMatrixClassifier) -> None:
    pairs = ([0, 1, 5], [0, 5, 3])  # known to every side
    for verb in (model.predict, model.decision_function, model.predict_proba):
        verb(pairs)
    with learning():
        model.partial_fit([0, 1], [2, 3], model.classes_[[0, -1]])
        model.predict(pairs)


def _on_rows(model: Any, width: int) -> None:
    rows = np.full((3, width), np.nan)
    rows[0], rows[1, ::2] = 0.5, -1.0
    table = Observed.from_dense(rows)
    for verb in (
        "predict",
        "predict_proba",
        "decision_function",
        "transform",
        "impute",
        "score_samples",
        "get_covariance",
    ):
        if hasattr(model, verb):
            getattr(model, verb)(*([] if verb == "get_covariance" else [table]))
    with learning():
        model.partial_fit(table, *_targets(model))
        load_again(model)


def _targets(model: Any) -> list[Any]:
    if hasattr(model, "classes_"):
        return [np.resize(model.classes_, 3)]
    return [[0.0, 1.0, 2.0]] if hasattr(model, "predict") else []


@contextlib.contextmanager
def learning() -> Iterator[None]:
    """A forged state that predicts may fail to learn with any error of Python's, but never crash or eat the memory."""
    try:
        yield
    except (MemoryError, SystemError):
        raise
    except Exception:
        pass


def load_again(model: Any) -> None:
    """A model that was loaded can be saved and loaded again."""
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "m")
        load_model(Path(folder) / "m")
