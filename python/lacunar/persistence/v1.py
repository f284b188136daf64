"""Model files of version 0.1.0 (model version 1): what each stored class has become.

A function takes the parameters and the learned attributes as the file gives them, and returns the name of today's class in
`lacunar.persistence.registry` with its parameters and attributes. Classes that are not named here are stored as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Values = dict[str, Any]
Stored = tuple[str, Values, Values]  # name of the class, parameters, learned attributes


def _category_encoder(params: Values, state: Values) -> Stored:
    return "lacunar.TableEncoder", params, state | _kinds(state)


def _table_encoder(params: Values, state: Values) -> Stored:
    """The encoder of `lacunar compare`: a column for each of two categories, columns of free text left out."""
    if "names_" not in state:
        return "lacunar.TableEncoder", {**params, "drop_binary": False, "text": "drop"}, {}
    names, left_out = list(state["names_"]), list(state["left_out_"])
    found = _kinds(state)
    learned = {
        "kinds_": [*found["kinds_"], *["dropped"] * len(left_out)],
        "categories_": [*found["categories_"], *[None] * len(left_out)],
        "n_features_in_": len(names) + len(left_out),
        "feature_names_in_": np.array([*names, *left_out], dtype=object),
    }
    return "lacunar.TableEncoder", {**params, "drop_binary": False, "text": "drop"}, learned


def _kinds(state: Values) -> Values:
    """Kinds of columns where a file has categories only: a text column without any saw nothing in `fit`."""
    if "categories_" not in state:
        return {}
    known = [None if each is None or not len(each) else np.asarray(each, dtype=object) for each in state["categories_"]]
    kinds = ["number" if each is None else "category" for each in known]
    return {"kinds_": kinds, "categories_": known}


def _slrm(params: Values, state: Values) -> Stored:
    """Regression from all rows, or one row after the other: "stochastic", and "paper" of 0.1.0, which no fit has any more."""
    solver = params.get("solver", "em")
    params, state = _regression(params, state)
    if solver in ("em", "als"):
        params = {key: value for key, value in params.items() if key not in _ONLINE}
        params["lam1"] = "inf" if params.get("lam1") == "auto" else params.get("lam1", "inf")
        params["max_iter"] = params.get("max_iter") or 100
        return "lacunar.SLRMRegressor", params, state
    if params.get("clip", 8.0) != 8.0:
        raise ValueError(
            f"clip must be 8 in a stored SLRMRegressor with solver={solver!r}; got {params['clip']}. SLRMOnlineRegressor has no other: "
            "fit again."
        )
    kept = _correlation({key: value for key, value in params.items() if key not in _BATCH})
    return "lacunar.SLRMOnlineRegressor", kept, _renamed(state, "tracker_", "state_")


_ONLINE = {
    "options", "state", "forget", "delta", "rho", "constant_passes", "validate", "validation_fraction", "precision",
}  # fmt: skip
_BATCH = {"solver", "ridge", "constant_passes", "validation_fraction", "tol", "clip", "precision", "delta"}


def _regression(params: Values, state: Values) -> tuple[Values, Values]:
    """Basis and weights are stored once, as orthonormal components and coefficients; centring and scaling are one parameter."""
    params = {key: value for key, value in params.items() if key != "orthonormalize"}
    center, scale = params.pop("center", True), params.pop("scale", True)
    # With means 0 and scales 1 in the file nothing changes but that values are clipped as they were.
    params["standardize"] = center or scale or params.get("clip", 8.0) is not None
    if "U_" in state:
        state = _renamed(state, "center_", "mean_")
        state["components_"] = np.ascontiguousarray(np.transpose(state.pop("U_")))
        state.setdefault("spread_scale_", np.ones(len(state["label_mean_"])))
        one = state.get("one_target_", False)
        state["intercept_"] = float(state["intercepts_"][0]) if one else state["intercepts_"]
        state = {name: value for name, value in state.items() if name not in ("basis_", "weights_", "intercepts_")}
    return params, state


def _regressor(name: str, *dropped: str) -> Callable[[Values, Values], Stored]:
    """Another regressor through a subspace, without the parameters it no longer has."""

    def change(params: Values, state: Values) -> Stored:
        params, state = _regression(params, state)
        return name, {key: value for key, value in params.items() if key not in dropped}, state

    return change


def _sampler(name: str) -> Callable[[Values, Values], Stored]:
    """A stored sampler of attributes: `budget` was what is `n_observed` today, `output="average"` the same as "topk"."""

    def upgraded(params: Values, state: Values) -> Stored:
        params = _renamed(params, "budget", "n_observed")
        if params.get("output") == "average":
            params["output"] = "topk"
        return name, params, _renamed(state, "tables_", "state_")

    return upgraded


def _popca(params: Values, state: Values) -> Stored:
    rates = params.pop("p", None)  # of weights="known"
    if rates is not None:
        params["weights"] = rates
    if "tables_" in state:
        state["state_"] = {"shift": state.pop("shift_"), **state.pop("tables_")}
    return "lacunar.POPCA", _renamed(params, "scale", "standardize"), state


def _tracker(name: str) -> Callable[[Values, Values], Stored]:
    """A stored tracker of subspaces."""
    return lambda params, state: (
        name,
        _correlation(_renamed(params, "max_passes", "max_iter")),
        _renamed(state, "tracker_", "state_"),
    )


def _correlation(params: Values) -> Values:
    """`correlation` was called state, and a matrix for each column of the data "per-row": for each row of the basis."""
    named = _renamed(params, "state", "correlation")
    return {key: "per-column" if value == "per-row" else value for key, value in named.items()}


def _renamed(values: Values, old: str, new: str) -> Values:
    return {new if name == old else name: value for name, value in values.items()}


def _pairs(params: Values, state: Values) -> Stored:
    """Side information had been written out whole; today a file holds what it has grown since the beginning."""
    if "state_" in state:
        learned, tables = state["state_"], []
        for table in learned["tables"]:
            rest = {name: part for name, part in table.items() if name not in ("base", "fresh", "side")}
            tables.append({**rest, "side": _side(table["side"], table["base"])})
        fresh = [table["fresh"] for table in learned["tables"]]
        state = {**state, "state_": {**learned, "tables": tables, "fresh": fresh}}
    if params.get("n_ids"):
        params["horizon"] = (params["horizon"] or 1, *params["n_ids"])
    if params.get("prior") or params.get("randomized"):
        raise ValueError(
            f"prior must be 0 and randomized False in a stored OnlineMatrixClassifier; got prior={params.get('prior')!r}, "
            f"randomized={params.get('randomized')!r}. Today's has neither: fit again."
        )
    gone = ("n_ids", "prior", "randomized", "tol")
    return "lacunar.OnlineMatrixClassifier", {name: v for name, v in params.items() if name not in gone}, state


def _side(saved: Values, n_begun: int) -> Values:
    kept: Values = {"digest": saved["digest"]}
    if saved["type"] == "mixed":
        kept["base"] = _side(saved["base"], n_begun)
    elif saved["type"] == "function":
        kept["points"] = saved["points"][n_begun:]
    elif saved["type"] == "features":
        kept["phi"] = saved["phi"][n_begun:]
    elif saved["type"] == "factor" and saved["grows"]:
        kept["size"] = len(saved["phi"])
    return kept


def _completion(kind: str, intercept: str) -> Callable[[Values, Values], Stored]:
    """A stored mc-1 or mc-b: four classes of their own, with factors (columns, rank) and two choices of how steps are made."""

    def upgraded(params: Values, state: Values) -> Stored:
        given = {key: value for key, value in params.items() if key not in {"accelerate", "svd_solver"}}
        learned = _renamed(state, "center_", "mean_")
        for old, new in (("basis_", "components_"), ("label_basis_", "label_components_")):
            if old in learned:
                learned[new] = np.ascontiguousarray(np.transpose(learned.pop(old)))
        if "ones_basis_" in learned:
            learned["ones_component_"] = learned.pop("ones_basis_")
        return f"lacunar.MatrixCompletion{kind}", {**given, "intercept": intercept}, learned

    return upgraded


def _geom(params: Values, state: Values) -> Stored:
    return "lacunar.GeomClassifier", params, _renamed(state, "center_", "mean_")


def _karma(kind: str) -> Callable[[Values, Values], Stored]:
    """`KarmaClassifier` or `KarmaRegressor` of then, which learned batches and streams: what took steps is online now."""

    def change(params: Values, state: Values) -> Stored:
        params, state = _kernel(params), _renamed(state, "center_", "mean_")
        solver = state.get("solver_", "online" if params["solver"] == "online" or params["passes"] else "gram")
        shared = {key: params[key] for key in _KARMA if key in params}
        if solver == "online" or ("state_" in state and "gap_" not in state):
            return f"lacunar.KarmaOnline{kind}", shared | _online(params, state), _engine(state)
        batch = {
            key: params[key]
            for key in ("C", "degree", "class_weight", "tol", "max_iter", "memory_limit")
            if key in params
        }
        if "dual_coef_" in state:
            state = {"n_rows_seen_": max(len(state["dual_coef_"]), 1)} | state
        chosen = "auto" if params["solver"] == "online" else params["solver"]
        return f"lacunar.Karma{kind}", shared | batch | {"solver": chosen}, _engine(state)

    return change


_KARMA = (
    *("gamma", "loss", "epsilon", "count_scale", "indicators", "normalize", "standardize"),
    *("sparse_missing", "random_state", "n_jobs", "verbose"),
)


def _online(params: Values, state: Values) -> Values:
    """Parameters of Algorithm 1. rho held C; a step other than that of theory is the constant one."""
    found = {"max_iter": params["passes"] or 1, "budget": params["max_support"]}
    rho = params["rho"]
    if rho is None and params["C"] != 1:
        rho = state["state_"]["rho"] if "state_" in state else 1e-4 / params["C"]
    eta = params["eta0"] if params["eta"] == "constant" else "theory"
    if "class_weight" in params:
        found["class_weight"] = params["class_weight"] if isinstance(params["class_weight"], dict) else None
    return found | {"rho": rho, "eta": eta}


def _engine(state: Values) -> Values:
    """The state of Algorithm 1 or of an ascent under the names of its parts today."""
    if "state_" not in state:
        return state
    parts = {name: value for name, value in state["state_"].items() if name != "power_t"}
    if "max_support" in parts:
        parts["budget"] = parts.pop("max_support")
    solver = "support" if state["solver_"] == "online" else state["solver_"]
    return state | {"solver_": solver, "state_": parts}


def _kernel(params: Values) -> Values:
    """Parameters of the kernel; its constant feature has value 1, and "paper" was a way to write three others."""
    params = {key: value for key, value in _renamed(params, "scale", "count_scale").items() if key != "constant"}
    if params.get("options") == "paper":
        params |= {"count_scale": "raw", "normalize": None, "indicators": False}
    return params


def _karma_search(name: str) -> Callable[[Values, Values], Stored]:
    """A search, without the loss of its final models, which are in the file; the intercept was theirs alone."""

    def change(params: Values, state: Values) -> Stored:
        params = {key: value for key, value in _kernel(params).items() if key not in ("refit_loss", "tol", "max_iter")}
        if name == "lacunar.KarmaRegressorCV" and "estimators_" in state:
            state = {"intercept_": state["estimators_"][0].intercept_} | state
        return name, params, state

    return change


def _karma_features(params: Values, state: Values) -> Stored:
    return "lacunar.KarmaFeatures", _renamed(params, "scale", "count_scale"), _renamed(state, "center_", "mean_")


# Name of a stored class -> what turns its parameters and learned attributes into today's class, parameters and attributes.
# A class that is renamed or split, or whose parameters or attributes are renamed, adds its function here.
UPGRADES: dict[str, Callable[[Values, Values], Stored]] = {
    "lacunar.ActivePOPCA": _sampler("lacunar.ActivePOPCA"),
    "lacunar.CategoryEncoder": _category_encoder,
    "lacunar.GeomClassifier": _geom,
    "lacunar.MBEG": _sampler("lacunar.MBEG"),
    "lacunar.GROUSE": _tracker("lacunar.GROUSE"),
    "lacunar.PETRELS": _tracker("lacunar.PETRELS"),
    "lacunar.MPCRRegressor": _regressor("lacunar.MPCRRegressor"),
    "lacunar.POPCA": _popca,
    "lacunar.OnlineMatrixClassifier": _pairs,
    "lacunar.MC1Classifier": _completion("Classifier", "column"),
    "lacunar.MC1Regressor": _completion("Regressor", "column"),
    "lacunar.MCBClassifier": _completion("Classifier", "bias"),
    "lacunar.MCBRegressor": _completion("Regressor", "bias"),
    "lacunar.KarmaClassifier": _karma("Classifier"),
    "lacunar.KarmaClassifierCV": _karma_search("lacunar.KarmaClassifierCV"),
    "lacunar.KarmaFeatures": _karma_features,
    "lacunar.KarmaRegressor": _karma("Regressor"),
    "lacunar.KarmaRegressorCV": _karma_search("lacunar.KarmaRegressorCV"),
    "lacunar.SLRMRegressorCV": _regressor("lacunar.SLRMRegressorCV"),
    "lacunar.SMPCRRegressor": _regressor("lacunar.SMPCRRegressor", "constant_passes", "precision", "delta"),
    "lacunar.SLRMRegressor": _slrm,
    "lacunar.TableEncoder": _table_encoder,
}


def of_version_1(name: str, params: Values, state: Values) -> Stored:
    """Today's class, parameters and attributes of a stored object of model version 1."""
    change = UPGRADES.get(name)
    return (name, params, state) if change is None else change(params, state)
