"""Rubin's rules: one answer from the same analysis of several imputed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from lacunar._log import warn_user
from lacunar._typing import Floats
from lacunar.observed.cells import cut, listed

_LARGEST = 1e150  # estimate, whose square is finite
_UNSTABLE = 0.1  # coefficient of variation of a standard error, beyond which there are too few draws


class _Estimate(NamedTuple):
    """What one analysis gives."""

    names: list[str]
    values: Floats  # (k,)
    variances: Floats  # (k,)
    df: float  # degrees of freedom of the complete data


@dataclass(frozen=True)
class PooledResult:
    """Estimates from several imputed tables as one, with what the missing entries cost.

    Attributes
    ----------
    names : list of str
        Of the k coefficients.
    estimate, std_error : ndarrays of shape (k,)
        Means over the tables, and the square roots of within + (1 + 1 / m) between.
    df : ndarray of shape (k,)
        Degrees of freedom of Barnard and Rubin (1999).
    fraction_missing : ndarray of shape (k,)
        Fraction of the information about each coefficient that is missing.
    relative_increase : ndarray of shape (k,)
        Relative increase of the variance by what is missing.
    within, between : ndarrays of shape (k,)
        Mean of the variances of one table, and variance of the estimates between tables.
    n_draws : int
        Number of tables, m.

    See Also
    --------
    pool : Makes it.
    """

    names: list[str]
    estimate: Floats
    std_error: Floats
    df: Floats
    fraction_missing: Floats
    relative_increase: Floats
    within: Floats
    between: Floats
    n_draws: int

    @property
    def statistic(self) -> Floats:
        """Estimates over standard errors, (k,); NaN where both are 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.estimate / self.std_error)

    @property
    def p_value(self) -> Floats:
        """Two-sided, by Student's t distribution, (k,)."""
        return np.asarray(2 * stats.t.sf(np.abs(self.statistic), self.df))

    def conf_int(self, level: float = 0.95) -> Floats:
        """Confidence intervals of the coefficients.

        Parameters
        ----------
        level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        ends : ndarray of shape (k, 2)
        """
        if not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}. Pass 0.95 for intervals of 95 %.")
        half = stats.t.ppf((1 + level) / 2, self.df) * self.std_error
        return np.column_stack([self.estimate - half, self.estimate + half])

    def summary_frame(self, level: float = 0.95) -> Any:
        """Everything as a frame with a row for each coefficient, as statsmodels prints its own.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        frame : pandas.DataFrame of shape (k, 9)
        """
        import pandas as pd

        ends = self.conf_int(level)
        edge = f"{(1 - level) / 2:.5g}", f"{(1 + level) / 2:.5g}"
        columns = {
            "coef": self.estimate,
            "std err": self.std_error,
            "t": self.statistic,
            "P>|t|": self.p_value,
            f"[{edge[0]}": ends[:, 0],
            f"{edge[1]}]": ends[:, 1],
            "df": self.df,
            "fraction missing": self.fraction_missing,
            "relative increase": self.relative_increase,
        }
        return pd.DataFrame(columns, index=self.names)

    def __str__(self) -> str:
        lines = [f"{self.n_draws} imputed tables, pooled by Rubin's rules", ""]
        ends, width = self.conf_int(), max(map(len, self.names), default=0)
        lines.append(
            f"{'':{width}} {'coef':>10} {'std err':>9} {'t':>8} {'P>|t|':>7} {'[0.025':>10} {'0.975]':>10} {'missing':>8}"
        )
        for k, name in enumerate(self.names):
            lines.append(
                f"{name:{width}} {self.estimate[k]:10.4g} {self.std_error[k]:9.4g} {self.statistic[k]:8.2f} {self.p_value[k]:7.3f} "
                f"{ends[k, 0]:10.4g} {ends[k, 1]:10.4g} {self.fraction_missing[k]:8.0%}"
            )
        return "\n".join(lines)


def pool(results: Iterable[Any]) -> PooledResult:
    """Pool the results of one analysis of several imputed tables by Rubin's rules.

    Parameters
    ----------
    results : iterable of at least two results
        Each has `params` and `cov_params()`, as in statsmodels, or `params_` and
        `variance_matrix_`, as in lifelines; or it is a tuple (estimate, covariance) or (estimate,
        covariance, degrees of freedom), where the estimate is a number or an array (k,) and the
        covariance an array (k, k), or of variances (k,), and degrees of freedom are above 0. An
        array or series of numbers alone, (k,) or (k, classes), are predictions, such as those of a
        scikit-learn estimator that was fitted to the table: their means are pooled, and `std_error`
        is what missing cells alone make uncertain.

    Returns
    -------
    pooled : PooledResult

    Warns
    -----
    UserWarning
        Where the draws are too few for the fraction of information that is missing: another set of
        as many would give a standard error that differs by more than a tenth. The warning says how
        many are needed.

    Notes
    -----
    Rubin, "Multiple Imputation for Nonresponse in Surveys", 1987; degrees of freedom of Barnard and
    Rubin, "Small-sample degrees of freedom with multiple imputation", 1999, from the `df_resid` of
    the results, infinite where they have none; number of draws of von Hippel, "How many imputations
    do you need?", 2020.

    Examples
    --------
    >>> from lacunar.impute import pool
    >>> pooled = pool([(1.0, 0.04), (1.1, 0.04), (1.05, 0.04)])
    >>> print(pooled.estimate.round(2), pooled.std_error.round(2), pooled.fraction_missing.round(2))
    [1.05] [0.21] [0.08]
    """
    if not isinstance(results, Iterable):
        raise TypeError(
            f"results must be those of several imputed tables, in a list or an iterator; got {type(results).__name__}. Pass one for each table."
        )
    estimates = [_read(result, k) for k, result in enumerate(results)]
    if len(estimates) < 2:
        raise ValueError(
            f"results must come from at least two imputed tables, between which estimates differ; got {len(estimates)}. Raise n_imputations."
        )
    for k, other in enumerate(estimates):
        if other.names != estimates[0].names:
            raise ValueError(
                f"results must have the same coefficients; got {listed(estimates[0].names)} from table 0 and {listed(other.names)} from "
                f"table {k}. A formula may drop a level that one of the tables lacks: set the levels of the column."
            )
    pooled = _pooled(estimates)
    _warn_if_few(pooled)
    return pooled


def _pooled(estimates: Sequence[_Estimate]) -> PooledResult:
    m = len(estimates)
    values = np.array([each.values for each in estimates])
    within = np.mean([each.variances for each in estimates], axis=0)
    between = values.var(axis=0, ddof=1)
    extra = (1 + 1 / m) * between
    total = within + extra
    share = np.divide(extra, total, out=np.zeros_like(total), where=total > 0)
    df = barnard_rubin(share, m, min(each.df for each in estimates))
    increase = np.divide(extra, within, out=np.full_like(within, np.inf), where=within > 0)
    increase[total == 0] = 0.0
    with np.errstate(invalid="ignore"):
        fraction = np.where(np.isinf(increase), 1.0, (increase + 2 / (df + 3)) / (increase + 1))
    fraction[share == 0] = 0.0
    names, mean, fraction = estimates[0].names, values.mean(axis=0), np.minimum(fraction, 1.0)
    return PooledResult(names, mean, np.sqrt(total), df, fraction, increase, within, between, m)


def barnard_rubin(share: Floats, m: int, complete: float) -> Floats:
    """Degrees of freedom (k,) from the share of the variance that is due to what is missing, and those of complete data."""
    with np.errstate(divide="ignore"):
        old: Floats = (m - 1) / share**2
        if np.isinf(complete):
            return old
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        return np.asarray(1 / (1 / old + 1 / observed))


def _warn_if_few(pooled: PooledResult) -> None:
    fraction = np.where(pooled.within > 0, pooled.fraction_missing, 0.0)  # of predictions it is not known
    largest = float(fraction.max(initial=0.0))
    needed = int(np.ceil(1 + (largest / _UNSTABLE) ** 2 / 2))
    if needed > pooled.n_draws:
        name = pooled.names[int(np.argmax(fraction))]
        warn_user(
            f"{pooled.n_draws} draws are few where {largest:.0%} of the information about {cut(name)!r} is missing: the standard errors of "
            f"another set would differ by more than a tenth. Use n_imputations={needed} or more."
        )


# -- what one analysis gives --------------------------------------------------------------------------------------------------


def _read(result: Any, k: int) -> _Estimate:
    if isinstance(result, tuple) and len(result) in (2, 3):
        return _estimate(result[0], result[1], result[2] if len(result) == 3 else None, k)
    if hasattr(result, "params") and callable(getattr(result, "cov_params", None)):
        return _estimate(result.params, result.cov_params(), getattr(result, "df_resid", None), k)
    if hasattr(result, "params_") and hasattr(result, "variance_matrix_"):
        return _estimate(result.params_, result.variance_matrix_, None, k)
    if isinstance(result, np.ndarray) or hasattr(result, "to_numpy"):
        return _predictions(result, k)
    if hasattr(result, "predict"):
        raise TypeError(
            f"an analysis must return predictions of an estimator of scikit-learn, which has no covariance; got {type(result).__name__} itself "
            f"from table {k}. Return model.predict(rows) or model.predict_proba(rows) for rows that are the same for all tables."
        )
    raise TypeError(
        "an analysis must return a result with params and cov_params(), as those of statsmodels, a tuple (estimate, covariance), or an array of "
        f"predictions; got {cut(repr(result))} of type {type(result).__name__} from table {k}. Return the fitted model."
    )


def _predictions(result: Any, k: int) -> _Estimate:
    """Predictions (k,) or (k, classes), row by row, which have no variance of their own."""
    numbers = np.asarray(result)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(
            f"an analysis must return predictions that are numbers, of which there are means; got dtype {numbers.dtype} from table {k}. Return "
            "predict_proba(rows) for classes."
        )
    return _estimate(result if numbers.ndim == 1 else numbers.ravel(), np.zeros(numbers.size), None, k)


def _estimate(values: Any, covariance: Any, df: Any, k: int) -> _Estimate:
    try:
        numbers, matrix = (np.asarray(part, dtype=np.float64) for part in (values, covariance))
        df = np.inf if df is None else float(df)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"an analysis must return real numbers as estimates, covariance and degrees of freedom; got {cut(values)}, {cut(covariance)}, "
            f"{cut(df)} from table {k} ({error}). Correct the tuple."
        ) from None
    numbers = numbers.ravel(order="F") if numbers.ndim == 2 else np.atleast_1d(numbers)  # one column an equation
    variances = np.diag(matrix) if matrix.ndim == 2 else np.atleast_1d(matrix)
    fits = matrix.shape in {(), numbers.shape, 2 * numbers.shape} and variances.shape == numbers.shape
    if numbers.ndim != 1 or not fits:
        raise ValueError(
            f"an analysis must return estimates (k,) with a covariance (k, k) or variances (k,); got shapes {np.shape(values)} and "
            f"{np.shape(covariance)} from table {k}. Correct the pair."
        )
    if not ((np.abs(numbers) <= _LARGEST).all() and np.isfinite(variances).all() and (variances >= 0).all()):
        raise ValueError(
            f"an analysis must return finite estimates, at most {_LARGEST:g} in modulus, and variances of at least 0; got {cut(str(numbers))} "
            f"with {cut(str(variances))} from table {k}. The model may not be identified: drop columns that repeat others."
        )
    if not df > 0:
        raise ValueError(
            f"an analysis must return degrees of freedom above 0, or none for infinite ones; got {df:g} from table {k}. A model of as many "
            "coefficients as rows leaves none: fit fewer."
        )
    return _Estimate(_names_of(values, covariance, len(numbers)), numbers, variances, df)


def _names_of(values: Any, covariance: Any, n: int) -> list[str]:
    for labelled in (values, covariance):
        index = getattr(labelled, "index", None)
        if index is not None and not callable(index) and len(index) == n:
            return [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in index]
    return [f"x{j}" for j in range(n)]


def analysed(analysis: Callable[[Any], Any], tables: Iterable[Any]) -> PooledResult:
    """The same analysis of every table, pooled; an error of the analysis says from which table it came."""
    if not callable(analysis):
        raise TypeError(
            f"analysis must be a function of a completed table; got {cut(repr(analysis))} of type {type(analysis).__name__}. Pass a lambda."
        )
    results = []
    for k, table in enumerate(tables):
        try:
            results.append(analysis(table))
        except Exception as error:
            error.add_note(f"The analysis of imputed table {k} raised this.")
            raise
    return pool(results)
