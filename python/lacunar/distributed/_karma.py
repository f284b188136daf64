"""KARMA's weight table over shards: passes of Algorithm 1 side by side, averaged between rounds."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from lacunar.distributed._shards import dask_module, numbered, shards
from lacunar.karma.solvers import average_states


def fit_karma(model: Any, X: Any, y: Any, *, classes: Any = None, rounds: int = 1, first_rows: int = 1000) -> Any:
    """Fit `KarmaClassifier` or `KarmaRegressor` on the weight table to shards, by averaging.

    The first rows of the first shard settle columns and kernel. In a round every shard is passed once, from the average of the
    round before, and the tables are averaged with their rows as weights. That is not what one machine makes of all rows:
    docs/karma-solvers.md, "Threads", has the loss in accuracy.

    Parameters
    ----------
    model : KarmaClassifier or KarmaRegressor
        gamma 1, 2 or 3, and solver "auto" or "primal". Set `rho` to 1 / (C N) for N rows in all. It is not changed.
    X, y : as in `shards`
    classes : sequence, default=None
        All labels, for a classifier.
    rounds : int, default=1
        Passes over the data, with an average after each.
    first_rows : int, default=1000
        Rows that settle scales; they count once.

    Returns
    -------
    fitted : KarmaClassifier or KarmaRegressor
        `partial_fit` and `predict` go on from it.

    Raises
    ------
    ValueError
        A solver without a table; as `partial_fit` and `average_states`.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaClassifier
    >>> from lacunar.distributed import fit_karma
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> fitted = fit_karma(KarmaClassifier(loss="hinge"), [X[:1500], X[1500:]], [y[:1500], y[1500:]], classes=[0, 1])
    >>> bool(fitted.score(X, y) > 0.95)
    True
    """
    dask = dask_module()
    pieces = shards(X, y)
    begin = dask.delayed(numbered)(_begin, 0, model, pieces[0], classes, first_rows)
    for number in range(rounds):
        skip = [first_rows if number == 0 and k == 0 else 0 for k in range(len(pieces))]
        passed = [
            dask.delayed(numbered)(_learn, k, begin, piece, past)
            for k, (piece, past) in enumerate(zip(pieces, skip, strict=True))
        ]
        begin = dask.delayed(_average)(begin, passed)
    return dask.compute(begin)[0]


def _begin(model: Any, shard: tuple[Any, Any], classes: Any, first_rows: int) -> Any:
    begun = deepcopy(model)
    table, labels = shard
    options = {} if classes is None else {"classes": classes}
    begun.partial_fit(_rows(table, 0, first_rows), labels[:first_rows], **options)
    if begun.solver_ != "primal":
        raise ValueError(
            f"solver must be 'primal' over shards; got {begun.solver_!r}, whose stored rows do not average. Use gamma 1, 2 or 3."
        )
    return begun


def _learn(begun: Any, shard: tuple[Any, Any], past: int) -> dict[str, Any]:
    model = deepcopy(begun)  # a task may run again from the same inputs
    table, labels = shard
    if len(labels) > past:
        model.partial_fit(_rows(table, past, len(labels)), labels[past:])
    state: dict[str, Any] = model.state_
    return state


def _average(begun: Any, states: list[dict[str, Any]]) -> Any:
    model = deepcopy(begun)
    model.state_ = average_states(states, common=model.n_rows_seen_)
    model.n_rows_seen_ = int(model.state_["clock"][0])
    return model


def _rows(table: Any, start: int, stop: int) -> Any:
    return table.iloc[start:stop] if hasattr(table, "iloc") else table[start:stop]
