"""200 hostile tables for `LacunarClassifier` and `LacunarRegressor`: a finite answer or a clear error, no member lost on the way."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from lacunar import LacunarClassifier, LacunarRegressor, Observed

N = 24
LEARNERS = {"classes": LacunarClassifier, "numbers": LacunarRegressor}
QUICK = {"classes": ["logistic", "gaussian", "kernels"], "numbers": ["gaussian", "kernels", "forest"]}


def draws(n=N, d=4, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return np.where(rng.random(X.shape) < missing, np.nan, X)


def labels(n=N):
    return np.arange(n) % 2


def frame(**columns):
    return pd.DataFrame({"x": draws()[:, 0]} | columns)


def text(values, n=N):
    return pd.Series([values[i % len(values)] for i in range(n)], dtype=object)


def as_csr(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return sp.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def one_entry_a_row():
    X = np.full((N, 4), np.nan)
    X[np.arange(N), np.arange(N) % 4] = np.arange(N, dtype=float)
    return X


def with_column(values):
    return np.column_stack([draws(), values])


def with_row(X, values):
    X[5] = values
    return X


def blocks():
    X = draws(missing=0.0)
    X[::2, :2], X[1::2, 2:] = np.nan, np.nan
    return X


def read_only():
    X = draws()
    X.setflags(write=False)
    return X


def stored(*cells, shape=(N, 4)):
    rows, columns, values = zip(*cells, strict=True)
    return sp.csr_array((np.array(values, dtype=float), (rows, columns)), shape=shape)


# Name -> table. Every one must be answered.
TABLES = {
    "one row": lambda: draws(1),
    "two rows": lambda: draws(2),
    "three rows": lambda: draws(3),
    "four rows": lambda: draws(4),
    "five rows": lambda: draws(5),
    "nine rows": lambda: draws(9),
    "one column": lambda: draws(d=1),
    "one column, two rows": lambda: draws(2, 1),
    "two columns": lambda: draws(d=2),
    "more columns than rows": lambda: draws(8, 40),
    "complete": lambda: draws(missing=0.0),
    "nearly all missing": lambda: draws(missing=0.95),
    "all missing": lambda: np.full((N, 4), np.nan),
    "one entry": lambda: np.where(np.arange(N * 4).reshape(N, 4) == 7, 1.0, np.nan),
    "one entry a row": one_entry_a_row,
    "a column all missing": lambda: with_column(np.full(N, np.nan)),
    "a row all missing": lambda: with_row(draws(), np.nan),
    "half of the rows all missing": lambda: np.where(np.arange(N)[:, None] % 2, np.nan, draws(missing=0.0)),
    "checkerboard": lambda: np.where((np.arange(N)[:, None] + np.arange(4)) % 2, np.nan, draws(missing=0.0)),
    "blocks": blocks,
    "constant": lambda: np.ones((N, 4)),
    "zeros": lambda: np.zeros((N, 4)),
    "constant where observed": lambda: np.where(np.isnan(draws()), np.nan, 7.0),
    "a constant column": lambda: with_column(np.full(N, 3.0)),
    "a column constant but for missing": lambda: with_column(np.where(np.arange(N) % 3, 3.0, np.nan)),
    "a column seen once": lambda: with_column(np.where(np.arange(N) == 3, 1.0, np.nan)),
    "equal rows": lambda: np.tile(draws(1, missing=0.0), (N, 1)),
    "equal rows with missing entries": lambda: np.tile([1.0, np.nan, 2.0, 3.0], (N, 1)),
    "rows twice": lambda: np.repeat(draws(N // 2), 2, axis=0),
    "columns twice": lambda: np.tile(draws(), 2),
    "columns of opposite sign": lambda: np.column_stack([draws(), -draws()]),
    "rank one": lambda: np.outer(np.arange(1.0, N + 1), [1.0, 2.0, 3.0]),
    "1e300": lambda: 1e300 * draws(),
    "1e300 in one entry": lambda: with_row(draws(), 1e300),
    "the largest number": lambda: np.where(draws() > 0, np.finfo(float).max, -np.finfo(float).max),
    "1e300 and 1e-300": lambda: np.column_stack([1e300 * draws(), 1e-300 * draws()]),
    "1e-300": lambda: 1e-300 * draws(),
    "subnormal": lambda: 5e-324 * np.round(10 * draws()),
    "a large offset": lambda: 1e12 + draws(),
    "an offset beyond precision": lambda: 1e17 + draws(),
    "one outlier": lambda: with_row(draws(), 1e9),
    "heavy tails": lambda: draws() ** 9,
    "negative zeros": lambda: np.where(draws() > 0, -0.0, 0.0),
    "float32": lambda: draws().astype(np.float32),
    "float32 near its limit": lambda: (1e38 * draws()).astype(np.float32),
    "float16": lambda: draws().astype(np.float16),
    "integers": lambda: np.arange(N * 4).reshape(N, 4),
    "int8": lambda: np.arange(N * 4).reshape(N, 4).astype(np.int8),
    "uint64": lambda: np.arange(N * 4, dtype=np.uint64).reshape(N, 4) + np.uint64(2**63),
    "booleans": lambda: np.arange(N * 4).reshape(N, 4) % 3 == 0,
    "a list of lists": lambda: draws().tolist(),
    "an array of objects": lambda: draws().astype(object),
    "Fortran order": lambda: np.asfortranarray(draws()),
    "every second row": lambda: draws(2 * N)[::2],
    "rows backwards": lambda: draws()[::-1],
    "read only": read_only,
    "sparse": lambda: as_csr(draws()),
    "sparse, one entry": lambda: stored((3, 1, 2.0)),
    "sparse, nothing stored": lambda: sp.csr_array((N, 4)),
    "sparse, stored zeros": lambda: stored((0, 0, 0.0), (1, 1, 0.0), (2, 2, 1.0)),
    "sparse, csc": lambda: as_csr(draws()).tocsc(),
    "sparse, coo": lambda: as_csr(draws()).tocoo(),
    "Observed": lambda: Observed.from_dense(draws()),
    "two levels": lambda: frame(c=text(["a", "b"])),
    "one level": lambda: frame(c=text(["a"])),
    "a level a row": lambda: frame(c=text([f"level {i}" for i in range(N)])),
    "levels and missing": lambda: frame(c=text(["a", None, "b", np.nan])),
    "levels all missing": lambda: frame(c=text([None])),
    "empty strings": lambda: frame(c=text(["", "a", " "])),
    "the word nan": lambda: frame(c=text(["nan", "NaN", "None", None])),
    "not ASCII": lambda: frame(c=text(["é", "日本", "\u200b", "🙂"])),
    "very long strings": lambda: frame(c=text(["a" * 10_000, "b" * 10_000])),
    "only categories": lambda: frame(c=text(["a", "b", "c"])).drop(columns="x"),
    "categorical": lambda: frame(c=pd.Categorical(text(["a", "b", "c"]))),
    "categories never used": lambda: frame(c=pd.Categorical(text(["a", "b"]), categories=list("abcdefgh"))),
    "ordered categories": lambda: frame(c=pd.Categorical(text(["lo", "hi"]), categories=["lo", "hi"], ordered=True)),
    "categories of numbers": lambda: frame(c=pd.Categorical([i % 3 for i in range(N)])),
    "boolean with NA": lambda: frame(c=pd.array([True, False, None] * 8, dtype="boolean")),
    "Int64 with NA": lambda: frame(c=pd.array([1, 2, None] * 8, dtype="Int64")),
    "Float64 with NA": lambda: frame(c=pd.array([1.5, 2.5, None] * 8, dtype="Float64")),
    "strings with NA": lambda: frame(c=pd.array(["a", "b", None] * 8, dtype="string")),
    "dates": lambda: frame(t=pd.date_range("2020-01-01", periods=N)),
    "dates before 1970": lambda: frame(t=pd.date_range("1950-01-01", periods=N, freq="YS")),
    "dates before 1700": lambda: frame(t=pd.date_range("1678-01-01", periods=N, freq="D")),
    "dates and NaT": lambda: frame(t=pd.Series(pd.date_range("1969-12-20", periods=N)).where(np.arange(N) % 3 > 0)),
    "dates all NaT": lambda: frame(t=pd.Series([pd.NaT] * N, dtype="datetime64[ns]")),
    "one date": lambda: frame(t=pd.Timestamp("1960-02-29")),
    "dates with a time zone": lambda: frame(t=pd.date_range("1969-12-31", periods=N, freq="h", tz="Europe/Paris")),
    "columns named by numbers": lambda: pd.DataFrame(draws()),
    "an index that is not 0..n": lambda: frame(c=text(["a", "b"])).set_index(np.arange(N)[::-1] * 7),
    "an index twice": lambda: frame(c=text(["a", "b"])).set_index(np.zeros(N)),
    "every kind of column": lambda: frame(
        c=text(["a", None, "b"]), b=text([True, False, None]), t=pd.date_range("1969-12-20", periods=N), k=np.nan
    ),
}


def answered(model, X, y, rows=None):
    """Fit and predict under warnings as errors, but for those that tell the user something; no member may be lost."""
    with warnings.catch_warnings(record=True, action="always") as said:
        model.fit(X, y)
        predicted = model.predict(X if rows is None else rows)
        chances = model.predict_proba(X if rows is None else rows) if hasattr(model, "predict_proba") else None
    for warning in said:
        assert issubclass(warning.category, UserWarning), f"{warning.category.__name__}: {warning.message}"
        assert "could not be fitted" not in str(warning.message), warning.message
    if chances is not None:
        assert np.all(np.isfinite(chances))
        assert np.all(chances >= 0)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-9)
        assert set(np.unique(predicted)) <= set(model.classes_)
    else:
        assert np.all(np.isfinite(np.asarray(predicted, dtype=float)))
    return predicted


def table_kinds():
    """Every sixth table by both learners; the others, which are slow tests, by one after the other: what reads them is the same."""
    for k, name in enumerate(TABLES):
        for kind in LEARNERS if k % 6 == 0 else [list(LEARNERS)[k % 2]]:
            yield pytest.param(name, kind, marks=[pytest.mark.slow] if k % 6 else [])


@pytest.mark.parametrize(("name", "kind"), list(table_kinds()))
def test_every_table_is_answered(name, kind):
    X = TABLES[name]()
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    y = labels(n) if kind == "classes" else np.arange(n) ** 1.5
    predicted = answered(LEARNERS[kind](members=QUICK[kind], cv=3), X, y)
    assert predicted.shape == (n,)


LABELS = {
    "one class": lambda: np.zeros(N, dtype=int),
    "one row of a class": lambda: (np.arange(N) == 3).astype(int),
    "two rows of a class": lambda: (np.arange(N) < 2).astype(int),
    "twelve classes of two rows": lambda: np.arange(N) % 12,
    "a class a row": lambda: np.arange(N),
    "strings": lambda: np.where(labels(), "yes", "no"),
    "strings as objects": lambda: np.where(labels(), "yes", "no").astype(object),
    "booleans": lambda: labels().astype(bool),
    "negative integers": lambda: labels() * 10 - 5,
    "large integers": lambda: labels() + 2**62,
    "floats that are whole": lambda: labels().astype(float),
    "a series": lambda: pd.Series(labels(), index=np.arange(N) + 100),
    "labels missing": lambda: np.where(np.arange(N) % 4 == 0, np.nan, labels()),
    "one label known": lambda: np.where(np.arange(N) == 4, 1.0, np.nan),
}
NUMBERS = {
    "constant": lambda: np.full(N, 3.0),
    "zeros": lambda: np.zeros(N),
    "1e150": lambda: 1e150 * np.linspace(-1, 1, N),
    "1e-300": lambda: 1e-300 * np.linspace(-1, 1, N),
    "a large offset": lambda: 1e15 + np.arange(N),
    "one outlier": lambda: np.where(np.arange(N) == 3, 1e12, np.arange(N)),
    "integers": lambda: np.arange(N),
    "float32": lambda: np.arange(N, dtype=np.float32),
    "missing": lambda: np.where(np.arange(N) % 4 == 0, np.nan, np.arange(N)),
    "one known": lambda: np.where(np.arange(N) == 4, 1.0, np.nan),
    "two columns": lambda: np.column_stack([np.arange(N), np.arange(N)[::-1] ** 2.0]),
    "two columns, one constant": lambda: np.column_stack([np.arange(N), np.ones(N)]),
    "two columns, known in different rows": lambda: np.where(
        (np.arange(N)[:, None] + np.arange(2)) % 3 == 0, np.nan, np.arange(2.0 * N).reshape(N, 2)
    ),
}


@pytest.mark.parametrize("name", list(LABELS))
def test_every_kind_of_label_is_answered(name):
    """By all members where the counts of the classes are unusual, by quick ones where only their type is."""
    y = LABELS[name]()
    members = "auto" if pd.Series(y).value_counts().min() < 5 or pd.Series(y).nunique() < 2 else QUICK["classes"]
    answered(LacunarClassifier(members=members, cv=3), draws(), y)


@pytest.mark.parametrize("name", list(NUMBERS))
def test_every_kind_of_number_is_answered(name):
    y = NUMBERS[name]()
    predicted = answered(LacunarRegressor(members=QUICK["numbers"], cv=3), draws(), y)
    assert predicted.shape == np.shape(y)


# Name -> training table, rows to predict.
NEW_ROWS = {
    "all missing": lambda: (draws(missing=0.0), np.full((3, 4), np.nan)),
    "1e300": lambda: (draws(), np.full((3, 4), 1e300)),
    "complete, after missing": lambda: (draws(), draws(missing=0.0, seed=1)),
    "missing, after complete": lambda: (draws(missing=0.0), draws(missing=0.6, seed=1)),
    "a column never seen before": lambda: (with_column(np.full(N, np.nan)), np.ones((3, 5))),
    "one row": lambda: (draws(), draws(1)),
    "levels never seen": lambda: (frame(c=text(["a", "b"])), frame(c=text(["z", "y", None]))),
    "a date a thousand years away": lambda: (
        frame(t=pd.date_range("1960-01-01", periods=N)),
        pd.DataFrame({"x": [0.0], "t": pd.to_datetime(["2262-01-01"])}),
    ),
}


@pytest.mark.parametrize("kind", list(LEARNERS))
@pytest.mark.parametrize("name", list(NEW_ROWS))
def test_rows_unlike_those_of_training_are_answered(name, kind):
    X, rows = NEW_ROWS[name]()
    y = labels() if kind == "classes" else np.arange(N) ** 1.5
    assert len(answered(LEARNERS[kind](members=QUICK[kind], cv=3), X, y, rows)) == len(rows)


@pytest.mark.parametrize("kind", list(LEARNERS))
def test_all_members_take_a_small_mixed_table(kind):
    y = labels() if kind == "classes" else np.arange(N) ** 1.5
    answered(LEARNERS[kind](), TABLES["every kind of column"](), y)


@pytest.mark.parametrize("kind", list(LEARNERS))
def test_a_thousand_levels(kind):
    n = 1_000
    X = pd.DataFrame({"x": draws(n)[:, 0], "c": pd.Categorical([f"level {i}" for i in range(n)])})
    y = labels(n) if kind == "classes" else np.arange(n) ** 0.5
    answered(LEARNERS[kind](members=["gaussian", "forest"], cv=3), X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(LEARNERS))
def test_five_thousand_columns_of_forty_rows(kind):
    y = labels(40) if kind == "classes" else np.arange(40) ** 0.5
    answered(LEARNERS[kind](members=["gaussian", "kernels"], cv=3), draws(40, 5_000), y)


INFINITE = draws()
INFINITE[3, 1] = np.inf
# Name -> table, target, part of the message.
REFUSED = {
    "an infinite entry": lambda: (INFINITE, labels(), "row 3|[Ii]nf"),
    "an infinite target": lambda: (draws(), np.where(labels(), np.inf, 0.0), "[Ii]nf|finite"),
    "no rows": lambda: (np.empty((0, 4)), np.empty(0), "0 sample|row"),
    "no columns": lambda: (np.empty((N, 0)), labels(), "0 feature|column"),
    "one dimension": lambda: (np.arange(float(N)), labels(), "2D|dimension|reshape|Reshape"),
    "three dimensions": lambda: (np.zeros((N, 2, 2)), labels(), "dim"),
    "complex": lambda: (draws() + 1j, labels(), "[Cc]omplex"),
    "too few targets": lambda: (draws(), labels(N - 1), "inconsistent|length|24|23"),
    "no known target": lambda: (draws(), np.full(N, np.nan), "known|NaN|missing"),
    "no target": lambda: (draws(), None, "y"),
}


@pytest.mark.parametrize("kind", list(LEARNERS))
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_learned_is_refused(name, kind):
    X, y, message = REFUSED[name]()
    with pytest.raises((ValueError, TypeError), match=message):
        LEARNERS[kind](members=["gaussian"], cv=3).fit(X, y)


@pytest.mark.parametrize("kind", list(LEARNERS))
def test_rows_of_other_columns_are_refused(kind):
    model = LEARNERS[kind](members=["gaussian"], cv=3).fit(draws(), labels())
    with pytest.raises(ValueError, match=r"features|columns"):
        model.predict(draws(d=5))


@pytest.mark.parametrize("kind", list(LEARNERS))
@pytest.mark.parametrize("weight", [np.zeros(N), -np.ones(N), np.full(N, np.nan), np.ones(N - 1), np.full(N, 1e300)])
def test_weights_that_say_nothing_are_refused(weight, kind):
    with pytest.raises(ValueError, match=r"[Ww]eight|sample"):
        LEARNERS[kind](members=["gaussian"], cv=3).fit(draws(), labels(), sample_weight=weight)


@pytest.mark.parametrize("kind", list(LEARNERS))
@pytest.mark.parametrize(
    "weight", [np.full(N, 1e140), np.full(N, 1e-300), np.where(np.arange(N) % 2, 1e8, 1e-8), (np.arange(N) < 9) * 1.0]
)
def test_weights_of_any_size_are_answered(weight, kind):
    model = LEARNERS[kind](members=QUICK[kind], cv=3).fit(draws(), np.arange(N) // 3 % 2, sample_weight=weight)
    assert np.all(np.isfinite(model.predict(draws()).astype(float)))
