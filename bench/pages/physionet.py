"""Deaths in intensive care: the learner beside boosting and imputation on PhysioNet 2012, trained on set a, tried on set b.

    LACUNAR_DATA=... OMP_NUM_THREADS=1 python bench/pages/physionet.py [--only "lacunar;LightGBM"] [--quick]

4,000 patients each, 114 measurements of which 26 % are missing by what doctors chose to measure. Every learner has its own settings, all at full strength and on
one thread. AutoGluon, CatBoost and LightGBM are passed over where they are not installed. CPU seconds of `fit`, since other work may share the machine.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar import LacunarClassifier
from lacunar.datasets import fetch_dataset, load_patients


def flags() -> Any:
    """Means and a flag for each missing entry, before a logistic regression whose penalty is chosen by folds."""
    linear = LogisticRegressionCV(Cs=np.logspace(-4, 0, 9), scoring="neg_log_loss", max_iter=2000)
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), linear)


def peer(module: str, name: str, **settings: Any) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(module), name)(random_state=0, **settings)


class AutoGluon:
    """Its quick preset, on one processor; models without their library are passed over by itself."""

    def __init__(self) -> None:
        self.predictor = importlib.import_module("autogluon.tabular").TabularPredictor

    def fit(self, X: Any, y: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            model = self.predictor("died", eval_metric="log_loss", verbosity=0, path=folder)
            model.fit(_frame(X).assign(died=np.asarray(y)), presets="medium_quality", num_cpus=1, num_gpus=0)
            model.persist()
        self.model = model

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(_frame(X)).to_numpy()


def _frame(X: Any) -> Any:
    return importlib.import_module("pandas").DataFrame(X).rename(columns=str)


LEARNERS: dict[str, Callable[[], Any]] = {
    "lacunar": lambda: LacunarClassifier(random_state=0),
    "CatBoost": peer("catboost", "CatBoostClassifier", verbose=0, thread_count=1, allow_writing_files=False),
    "mean + flags + logistic": flags,
    "AutoGluon, medium quality": AutoGluon,
    "LightGBM": peer("lightgbm", "LGBMClassifier", verbose=-1, n_jobs=1),
    "HistGB": lambda: HistGradientBoostingClassifier(random_state=0),
}


def tables(quick: bool) -> tuple[Any, Any, Any, Any]:
    """Rows and labels to train on and to try on."""
    if not quick:
        return (
            *fetch_dataset("physionet2012-set-a", return_X_y=True),
            *fetch_dataset("physionet2012-set-b", return_X_y=True),
        )
    patients = load_patients()
    return patients.data[:300], patients.target[:300], patients.data[300:], patients.target[300:]


def main() -> None:
    """Print a Markdown table, best first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=";".join(LEARNERS))
    parser.add_argument("--quick", action="store_true", help="the 400 patients of the package, the fastest learners")
    options = parser.parse_args()
    names = ["mean + flags + logistic", "HistGB"] if options.quick else options.only.split(";")
    warnings.simplefilter("ignore")
    X, y, X_new, y_new = tables(options.quick)
    lines = []
    for name in names:
        try:
            model = LEARNERS[name]()
        except ModuleNotFoundError as error:
            print(f"{name}: {error.name} is not installed")
            continue
        started = time.process_time()
        model.fit(X, y)
        seconds, chances = time.process_time() - started, model.predict_proba(X_new)[:, 1]
        scores = roc_auc_score(y_new, chances), average_precision_score(y_new, chances), log_loss(y_new, chances)
        print(f"{name} is done", file=sys.stderr, flush=True)
        lines.append((-scores[0], f"| {name} | {' | '.join(f'{s:.4f}'[1:] for s in scores)} | {seconds:.1f} |"))
    print("| learner | AUC | average precision | log loss | CPU s of a fit |\n|---|---|---|---|---|")
    print("\n".join(line for _, line in sorted(lines)))


if __name__ == "__main__":
    main()
