"""Predictions and kernel blocks, one task a shard."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.distributed._shards import dask_module, numbered, shards
from lacunar.kernels import karma_kernel


def apply(model: Any, X: Any, method: str = "predict") -> list[NDArray[Any]]:
    """A fitted model's `predict`, `transform`, `decision_function` ... of every shard, in order.

    Parameters
    ----------
    model : fitted estimator
        Sent to every worker once.
    X : as in `shards`
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
    """Delayed blocks of the KARMA kernel between shards of X and of Y (default X), shapes (n_i, m_j).

    Parameters
    ----------
    X, Y : as in `shards`
    reference_scale : float
        The count scale c, a number > 0: a mean over all rows is none of a shard's business.
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
    left = shards(X)
    right = left if Y is None else shards(Y)
    return [[delayed(_block)(a, b, {**options, "scale": reference_scale}) for b in right] for a in left]


def _block(a: tuple[Any, Any], b: tuple[Any, Any], options: dict[str, Any]) -> NDArray[Any]:
    return np.asarray(karma_kernel(a[0], b[0], **options))
