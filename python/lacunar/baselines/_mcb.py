"""mc-b: matrix completion with a bias for every label."""

from __future__ import annotations

from typing import ClassVar

from lacunar.baselines._labels import CompletionClassifier
from lacunar.baselines._numbers import CompletionRegressor


class MCBClassifier(CompletionClassifier):
    """mc-b: labels as further columns of a partly observed matrix of low rank, and a bias for every label.

    Minimises mu ||Z||_* + lam / |Omega_Y| sum log(1 + exp(-y z)) + 1 / |Omega_X| sum (x - z)^2 / 2 over matrices Z of
    features and labels by fixed point continuation [1]_. It is transductive: rows to predict belong into `fit`, with NaN
    (or None) for a label.

    Parameters
    ----------
    lam : float or "holdout", default="holdout"
        Weight of the labels' mean loss against the features', > 0. "holdout" tries 1e-3 to 1 by decades.
    mu : float or "holdout", default="holdout"
        Weight of the nuclear norm, > 0, on the scale of mean losses. "holdout" reads it off the continuation.
    mu_min : float, default=1e-5
        Where the continuation ends under "holdout".
    eta : float, default=0.25
        Factor between two values of mu, in (0, 1).
    holdout : float, default=0.25
        Share of the labelled rows whose labels are hidden to choose `lam` and `mu`; their features stay in the matrix.
        With fewer than 4 labelled rows nothing is hidden, and "holdout" means 0.1 and `mu_min`.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries.
    svd_solver : {"auto", "full", "truncated"}, default="auto"
        "full" decomposes the whole matrix at every step; "truncated" never writes it out and iterates a block of
        singular vectors, started from those of the step before. "auto" is "full" for n D min(n, D) up to 2e8.
    max_rank : int or None, default=None
        Most singular values kept. With a limit the fixed point is no longer that of a convex problem.
    accelerate : bool, default=True
        Nesterov's momentum, reset where it points back: the same fixed point in five to twenty times fewer steps. False
        steps as printed in [1]_.
    tol : float, default=1e-5
        Distance to the solution, relative to the norm of the matrix, at which the steps at one mu end: what the changes of steps
        to come add up to, estimated from how fast those so far fell.
    max_iter : int, default=1000
        Most steps at one mu.
    options : {"paper"}, default=None
        "paper" sets `accelerate=False`, `standardize=False`, `svd_solver="full"`, `max_rank=None`, and `tol` is then the relative
        change of the matrix in a step, as [1]_ and [2]_ print it, which says nothing of the distance to the solution.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Which labels are hidden, and where block iteration starts. None is a fixed draw.
    n_jobs : int, default=None
        Threads of the codes of unseen rows.
    verbose : int, default=0
        Whether to report every mu.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Known labels, sorted.
    transduction_ : ndarray of shape (n,)
        Label that the completed matrix gives to every row of `fit`, known ones included.
    lam_, mu_ : float
        The weights used.
    rank_ : int
        Of the completed matrix.
    basis_ : ndarray of shape (d, rank)
        Column factors of the standardised features: right singular vectors times roots of singular values.
    label_basis_ : ndarray of shape (m, rank)
    ones_basis_ : ndarray of shape (rank,) or (0,)
    ones_weight_ : float
        Length of the entry 1 in a row, 0 here.
    bias_ : ndarray of shape (m,)
        Of every label column.
    ridge_ : float
        mu times the number of observed entries: the ridge of a row's code.
    center_, scale_, observed_columns_ : ndarrays of shape (d,)
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries or labels, no known label. In `predict`: other columns than in `fit`.

    Warns
    -----
    ConvergenceWarning
        The steps at the last mu ended at `max_iter`.

    See Also
    --------
    MC1Classifier : The same with a column of ones; usually better where columns are not centred.
    lacunar.KarmaClassifier : Classifies without completing anything.

    Notes
    -----
    Two classes are one label column, more are the 0/1 matrix of [2]_ under the same logistic loss. Unlike in
    `sklearn.semi_supervised`, -1 is a class: write ``np.where(y == -1, np.nan, y)`` where it means unknown.

    Every label has a bias of its own, moved by gradient steps of length 3.8 |Omega_Y| / (lam n) beside the matrix.

    Unseen rows are our extension; [1]_ predicts rows of the matrix only. With Z = P Q' split evenly, the fixed point makes
    every unlabelled row of P the ridge regression of the row's entries on rows of Q with ridge mu |Omega_X|: `predict`
    does the same for a row that was not there, so that it agrees with `transduction_` for one that was, unlabelled.
    Memory is O(nnz + (n + d) rank) under "truncated", and O(n d) under "full"; a step costs O(nnz rank + (n + d) rank^2),
    or O(n d min(n, d)).

    References
    ----------
    .. [1] A. Goldberg, X. Zhu, B. Recht, J.-M. Xu, R. Nowak, "Transduction with Matrix Completion: Three Birds with One
       Stone", NIPS 2010.
    .. [2] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015, sections 1 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.baselines import MCBClassifier
    >>> X = np.array([[2.0, 2.1], [1.5, np.nan], [-1.0, -1.2], [np.nan, -2.0], [1.0, np.nan], [-1.0, np.nan]])
    >>> y = np.array(["yes", "yes", "no", "no", None, None])
    >>> model = MCBClassifier(lam=1.0, mu=0.01).fit(X, y)
    >>> model.transduction_[4:], model.predict([[np.nan, 3.0]])
    (array(['yes', 'no'], dtype='<U3'), array(['yes'], dtype='<U3'))
    """

    _ones: ClassVar[bool] = False


class MCBRegressor(CompletionRegressor):
    """mc-b for numbers: targets as further columns of a partly observed matrix of low rank, under squared loss.

    Minimises mu ||Z||_* + lam / |Omega_Y| sum (y - z)^2 / 2 + 1 / |Omega_X| sum (x - z)^2 / 2 over matrices Z of features
    and targets by fixed point continuation [1]_, [2]_, with a bias for every target. It is transductive: rows to predict belong
    into `fit`, with NaN for a target. Targets are standardised over the known ones.

    Parameters
    ----------
    lam : float or "holdout", default="holdout"
        Weight of the labels' mean loss against the features', > 0. "holdout" tries 1e-3 to 1 by decades.
    mu : float or "holdout", default="holdout"
        Weight of the nuclear norm, > 0, on the scale of mean losses. "holdout" reads it off the continuation.
    mu_min : float, default=1e-5
        Where the continuation ends under "holdout".
    eta : float, default=0.25
        Factor between two values of mu, in (0, 1).
    holdout : float, default=0.25
        Share of the labelled rows whose labels are hidden to choose `lam` and `mu`; their features stay in the matrix.
        With fewer than 4 labelled rows nothing is hidden, and "holdout" means 0.1 and `mu_min`.
    standardize : bool, default=True
        Centre columns and divide by the standard deviation, over observed entries.
    svd_solver : {"auto", "full", "truncated"}, default="auto"
        "full" decomposes the whole matrix at every step; "truncated" never writes it out and iterates a block of
        singular vectors, started from those of the step before. "auto" is "full" for n D min(n, D) up to 2e8.
    max_rank : int or None, default=None
        Most singular values kept. With a limit the fixed point is no longer that of a convex problem.
    accelerate : bool, default=True
        Nesterov's momentum, reset where it points back: the same fixed point in five to twenty times fewer steps. False
        steps as printed in [1]_.
    tol : float, default=1e-5
        Distance to the solution, relative to the norm of the matrix, at which the steps at one mu end: what the changes of steps
        to come add up to, estimated from how fast those so far fell.
    max_iter : int, default=1000
        Most steps at one mu.
    options : {"paper"}, default=None
        "paper" sets `accelerate=False`, `standardize=False`, `svd_solver="full"`, `max_rank=None`, and `tol` is then the relative
        change of the matrix in a step, as [1]_ and [2]_ print it, which says nothing of the distance to the solution.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Which labels are hidden, and where block iteration starts. None is a fixed draw.
    n_jobs : int, default=None
        Threads of the codes of unseen rows.
    verbose : int, default=0
        Whether to report every mu.

    Attributes
    ----------
    transduction_ : ndarray of shape (n,) or (n, targets)
        What the completed matrix gives to every row of `fit`, known ones included.
    target_mean_, target_scale_ : ndarrays of shape (targets,)
    lam_, mu_ : float
        The weights used.
    rank_ : int
        Of the completed matrix.
    basis_ : ndarray of shape (d, rank)
        Column factors of the standardised features: right singular vectors times roots of singular values.
    label_basis_ : ndarray of shape (targets, rank)
    ones_basis_ : ndarray of shape (rank,) or (0,)
    ones_weight_ : float
        Length of the entry 1 in a row, 0 here.
    bias_ : ndarray of shape (targets,)
        Of every target, standardised.
    ridge_ : float
        mu times the number of observed entries: the ridge of a row's code.
    center_, scale_, observed_columns_ : ndarrays of shape (d,)
    n_iter_ : int
        Steps at the last mu.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        In `fit`: infinite entries or targets, a target that is known nowhere. In `predict`: other columns than in `fit`.

    Warns
    -----
    ConvergenceWarning
        The steps at the last mu ended at `max_iter`.

    See Also
    --------
    MC1Regressor : The same with a column of ones.
    lacunar.regression.SLRMRegressor : A noise model in place of the nuclear norm; takes NaN in y, too.

    Notes
    -----
    Every label has a bias of its own, moved by gradient steps of length 0.95 |Omega_Y| / (lam n) beside the matrix.

    Unseen rows are our extension; [1]_ predicts rows of the matrix only. With Z = P Q' split evenly, the fixed point makes
    every unlabelled row of P the ridge regression of the row's entries on rows of Q with ridge mu |Omega_X|: `predict`
    does the same for a row that was not there, so that it agrees with `transduction_` for one that was, unlabelled.
    Memory is O(nnz + (n + d) rank) under "truncated", and O(n d) under "full"; a step costs O(nnz rank + (n + d) rank^2),
    or O(n d min(n, d)).

    References
    ----------
    .. [1] A. Goldberg, X. Zhu, B. Recht, J.-M. Xu, R. Nowak, "Transduction with Matrix Completion: Three Birds with One
       Stone", NIPS 2010.
    .. [2] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015, sections 1 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.baselines import MCBRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 2))
    >>> X = a @ rng.normal(size=(2, 10))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> y = np.where(np.arange(200) < 100, a[:, 0], np.nan)
    >>> model = MCBRegressor(random_state=0).fit(X, y)
    >>> bool(np.mean((model.transduction_[100:] - a[100:, 0]) ** 2) < 0.05)
    True
    """

    _ones: ClassVar[bool] = False
