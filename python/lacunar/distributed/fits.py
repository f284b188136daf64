"""What runs over shards: predictions and kernel blocks, fits by sums where they are exact and by averages where they are not."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from lacunar.distributed.parts import DaskParts, dask_module, numbered, shards
from lacunar.karma.solvers import average_states
from lacunar.kernels import karma_kernel
from lacunar.lowrank import POPCA, SLRMRegressor


def apply(model: Any, X: Any, method: str = "predict") -> list[NDArray[Any]]:
    """A fitted model's `predict`, `transform`, `decision_function` ... of every shard, in order.

    Parameters
    ----------
    model : fitted estimator
        Sent to every worker once.
    X : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
    method : str, default="predict"

    Returns
    -------
    parts : list of ndarray
        One a shard; `numpy.concatenate` joins them.

    Raises
    ------
    AttributeError
        The model has no such method.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressor
    >>> from lacunar.distributed import apply
    >>> model = KarmaRegressor().fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> [part.shape for part in apply(model, [np.eye(3), np.ones((2, 3))])]
    [(3,), (2,)]
    """
    dask = dask_module()
    getattr(model, method)  # refused here, not by a worker
    sent = dask.delayed(model)
    return list(
        dask.compute(
            *[dask.delayed(numbered)(_call, number, sent, shard, method) for number, shard in enumerate(shards(X))]
        )
    )


def _call(model: Any, shard: tuple[Any, Any], method: str) -> NDArray[Any]:
    return np.asarray(getattr(model, method)(shard[0]))


def gram(X: Any, Y: Any = None, *, reference_scale: float, **options: Any) -> list[list[Any]]:
    """Delayed blocks of the KARMA kernel between shards of X and of Y (default X), shapes (n_i,
    m_j).

    Parameters
    ----------
    X, Y : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
        Rows of the two sides.
    reference_scale : float
        The count scale c, a number > 0; a shard cannot know the mean over all rows.
    options
        Of `karma_kernel`, but for `scale` and normalize="trace", which need all rows.

    Returns
    -------
    blocks : list of lists of Delayed
        `dask.array.from_delayed` and `dask.array.block` make an array of them.

    Raises
    ------
    ValueError
        normalize="trace".

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import gram
    >>> blocks = gram([np.eye(2), np.ones((3, 2))], reference_scale=2.0)
    >>> blocks[0][1].compute().shape
    (2, 3)
    """
    if options.get("normalize") == "trace":
        raise ValueError(
            "normalize must be None or 'cosine' by blocks; got 'trace', a mean over all rows. Divide afterwards."
        )
    delayed = dask_module().delayed
    row_shards = shards(X)
    column_shards = row_shards if Y is None else shards(Y)
    return [
        [delayed(_block)(a, b, {**options, "count_scale": reference_scale}) for b in column_shards] for a in row_shards
    ]


def _block(a: tuple[Any, Any], b: tuple[Any, Any], options: dict[str, Any]) -> NDArray[Any]:
    return np.asarray(karma_kernel(a[0], b[0], **options))


def fit_popca(model: POPCA, X: Any, *, keep: bool = True) -> POPCA:
    """Fit `POPCA` to shards, refinement included: what one machine makes of all rows, to rounding.

    Rows stay with the workers. Counts, means, tables of sums over pairs (or products with the rows,
    where no table is formed) and the steps of refinement are sums over rows, added in a tree of
    fixed shape, so that the result does not depend on who finishes first.

    Parameters
    ----------
    model : POPCA
        robust=None, and n_components not "holdout". It is not changed.
    X : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
    keep : bool, default=True
        Whether workers hold rows between steps, in float64 beside what they read, or read shards
        again: four times for a table, and at every step of refinement or product.

    Returns
    -------
    fitted : POPCA
        As after `fit` on all rows, tested to 1e-10 (1e-8 after refinement;
        diagnostics_["lambda_min"] is rough without a table); with a table `merge` and `partial_fit`
        go on from it.

    Raises
    ------
    ValueError
        As `POPCA.fit_parts` and `fit`, with the number of the shard; shards without rows, or with
        other columns than the first.

    Notes
    -----
    Once, 24 d^2 bytes for the table from every shard, and from every sum of four; or 8 d bytes for
    each of eight or more vectors both ways some 10 times without a table (times the width of the
    weights' division, one or two for columns seen alike). Then for k components, a step of
    refinement sends at most 4 d (k + 1) (k + 4) bytes both ways. Time as of `fit`, divided by the
    workers; the decomposition is made here.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import fit_popca
    >>> from lacunar.lowrank import POPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(400, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(fit_popca(POPCA(1), [X[:200], X[200:]]).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """
    fitted: POPCA = clone(model).fit_parts(DaskParts.of(X, keep=keep))
    return fitted


def fit_slrm(model: SLRMRegressor, X: Any, y: Any, *, keep: bool = True) -> SLRMRegressor:
    """Fit `SLRMRegressor` by EM or alternating least squares to shards: what one machine makes of
    all rows, to rounding.

    Rows stay with the workers. Means and scales of columns, products for the start, the sums of a
    step, and the regression of labels with its leave-one-out errors are sums over rows, added in a
    tree of fixed shape, so that the result does not depend on who finishes first.

    Parameters
    ----------
    model : SLRMRegressor
        With solver="em" or "als". `random_state`, `n_jobs` (threads of a task) and `verbose`
        (steps, printed here) count too. It is not changed.
    X : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
    y : None, str, dask array or series, or iterable with as many pieces
        A str names the column that holds the labels.
        Labels of every shard, (n_i,) or (n_i, targets), NaN where unknown.
    keep : bool, default=True
        Whether workers hold the standardised rows between steps, twice their size, or read and
        standardise shards again.

    Returns
    -------
    fitted : SLRMRegressor
        As after `fit` on all rows: float64 values agree to rounding that EM carries on, tested to
        1e-8; the column means of float32 values are rounded differently, tested to 1e-5.

    Raises
    ------
    ValueError
        As `SLRMRegressor.fit_parts` and `fit`, with the number of the shard; shards without rows,
        without labels, or with other columns or targets than the first.

    Notes
    -----
    For D columns, d components and k = d + 1 (k = d with center=False), a step sends 8 D k bytes to
    every shard, and from every shard, and from every sum of four, 8 D (k (k + 1) / 2 + k); the
    start sends 8 D (d + 20) bytes both ways, five times. Time as of `fit`, divided by the workers.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import fit_slrm
    >>> from lacunar.lowrank import SLRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> y = a[:, 0]
    >>> model = SLRMRegressor(2, random_state=0)
    >>> over = fit_slrm(model, [X[:100], X[100:200]], [y[:100], y[100:200]])
    >>> bool(np.allclose(over.predict(X[200:]), model.fit(X[:200], y[:200]).predict(X[200:])))
    True
    """
    fitted: SLRMRegressor = clone(model).fit_parts(DaskParts.of(X, y, keep=keep))
    return fitted


def fit_karma(model: Any, X: Any, y: Any, *, classes: Any = None, rounds: int = 1, first_rows: int = 1000) -> Any:
    """Fit `KarmaOnlineClassifier` or `KarmaOnlineRegressor` on the weight table to shards, by
    averaging.

    The first rows of the first shard settle columns and kernel. In a round every shard is passed
    once, from the average of the round before, and the tables are averaged with their rows as
    weights. That is not what one machine makes of all rows: docs/measured/karma-solvers.md,
    "Threads", has the loss in accuracy.

    Parameters
    ----------
    model : KarmaOnlineClassifier or KarmaOnlineRegressor
        gamma 1, 2 or 3, and no budget. Set `rho` to 1 / (C N) for N rows in all. It is not changed.
    X : dask array or dataframe (n, d), Parquet folder, or iterable of tables or delayed ones
    y : None, str, dask array or series, or iterable with as many pieces
        A str names the column that holds the labels.
    classes : sequence, default=None
        All labels, which a classifier needs unless it has begun with `partial_fit`.
    rounds : int, default=1
        Passes over the data, with an average after each.
    first_rows : int, default=1000
        Rows that settle scales; they count once.

    Returns
    -------
    fitted : KarmaOnlineClassifier or KarmaOnlineRegressor
        `partial_fit` and `predict` go on from it.

    Raises
    ------
    ValueError
        A model without a weight table; a classifier without `classes`, or a regressor with them; as
        `partial_fit` and `average_states`.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaOnlineClassifier
    >>> from lacunar.distributed import fit_karma
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> fitted = fit_karma(
    ...     KarmaOnlineClassifier(), [X[:1500], X[1500:]], [y[:1500], y[1500:]], classes=[0, 1]
    ... )
    >>> bool(fitted.score(X, y) > 0.95)
    True
    """
    dask = dask_module()
    _check_classes(model, classes)
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


def _check_classes(model: Any, classes: Any) -> None:
    """A classifier that no stream has begun needs all labels, which no shard knows; a regressor has none."""
    begun = hasattr(model, "classes_")
    if is_classifier(model) and classes is None and not begun:
        raise ValueError(
            f"classes must hold all labels for {type(model).__name__}, since a shard may lack some; got None. Pass "
            "fit_karma(..., classes=[...])."
        )
    if classes is not None and not is_classifier(model):
        raise ValueError(
            f"classes must be None for {type(model).__name__}, which has none; got {classes!r}. Leave it out."
        )


def _begin(model: Any, shard: tuple[Any, Any], classes: Any, first_rows: int) -> Any:
    begun = deepcopy(model)
    table, labels = shard
    options = {} if classes is None else {"classes": classes}
    begun.partial_fit(_rows(table, 0, first_rows), labels[:first_rows], **options)
    if begun.solver_ != "primal":
        raise ValueError(
            f"model must keep a weight table over shards, since stored rows do not average; got {model!r}. Use gamma 1, 2 or 3, and no budget."
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
