"""The mean of models of Algorithm 1 that learned different rows: what shards are put together by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lacunar.karma._losses import keeps_slopes
from lacunar.karma._primal import PrimalModel

_SAME = (
    "loss",
    "rho",
    "epsilon",
    "eta",
    "eta0",
    "power_t",
    "iterate",
    "n_outputs",
    "form",
    "n_features",
    "hash_bits",
    "dtype",
)


def average_states(states: Sequence[dict[str, Any]], common: int = 0) -> dict[str, Any]:
    """One state from those of weight tables that went on from the same state (or none) with rows of their own.

    Tables are averaged with the rows each learned since as weights, iterate and running mean alike; the clock stands at all rows
    together, so that learning can go on. This is averaging of iterates, not the model of one machine that saw all rows.

    Parameters
    ----------
    states : sequence of dict
        `state_` of estimators with `solver_="primal"`, or `PrimalModel.state()`.
    common : int, default=0
        Rows they had in common at the start.

    Raises
    ------
    ValueError
        States of other kernels, tables or step rules; of the online solver; of dual coordinate ascent.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaClassifier
    >>> from lacunar.karma.solvers import average_states
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 3)), rng.integers(2, size=200)
    >>> model = KarmaClassifier(loss="hinge", solver="primal").partial_fit(X, y, classes=[0, 1])
    >>> float(average_states([model.state_])["clock"][0])
    200.0
    """
    if not states:
        raise ValueError("states must hold at least one state; got none. Pass state_ of fitted models.")
    first = states[0]
    for number, state in enumerate(states):
        if "hash_bits" not in state or state["second"] is None:
            raise ValueError(
                f"states must be of Algorithm 1 on the weight table; state {number} is not. Fit with solver='primal' by "
                "partial_fit, fit_batches or passes=1."
            )
        other = next((name for name in _SAME if state[name] != first[name]), None)
        if other is not None:
            raise ValueError(
                f"states must be of models that began alike; {other} of state {number} is {state[other]!r}, of state 0 "
                f"{first[other]!r}. Send one model, begun by partial_fit, to every shard."
            )
    models = [PrimalModel.from_state(state) for state in states]
    own = np.array([max(model.t - common, 0) for model in models], dtype=np.float64)
    share = own / own.sum() if own.sum() else np.full(len(own), 1 / len(own))
    last = sum(w * model.weights("last").astype(np.float64) for w, model in zip(share, models, strict=True))
    mean = sum(w * model.weights().astype(np.float64) for w, model in zip(share, models, strict=True))
    t = common + own.sum()
    slopes = keeps_slopes(first["eta"], first["loss"])  # the clock then knows the scale from t: 1 / (rho t)
    scale = 1 / (first["rho"] * max(t, 1)) if slopes else 1.0
    weighted = first["iterate"] == "weighted"
    total = t * (t + 1) / 2 if weighted else t
    dtype = np.asarray(first["first"]).dtype
    made = dict(first)
    for name in ("pending_rows", "pending_first", "pending_second"):  # of wide tables: they are in the averages
        if name in made:
            made[name] = made[name][:0]
    made["first"] = np.asarray(last / scale, dtype=dtype)
    made["second"] = np.asarray(-total * mean, dtype=dtype)
    made["clock"] = np.array([t, scale, 0.0 if weighted else scale])
    return made
