"""Whatever a frame holds: a model or an encoder that `fit` made of it is saved, loaded, and answers with the same bits.

LACUNAR_DRAWS sets how many frames are drawn; each has a number, which draws the same frame again.
"""

import datetime
import importlib
import inspect
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from lacunar import LacunarClassifier, LacunarRegressor, load_model, save_model
from lacunar.comparison import TableModel, load_problem
from lacunar.encode import _EXAMPLES, TableEncoder
from lacunar.karma import KarmaClassifier, KarmaRegressor
from lacunar.learner import base
from lacunar.learner.members import members_of
from lacunar.observed.rules import trial_rows
from lacunar.papers.karma import MatrixCompletionClassifier
from lacunar.persistence import registry
from lacunar.uncertainty import MaskConformalClassifier, MaskConformalRegressor

pytestmark = pytest.mark.filterwarnings("ignore")  # of columns left out, few rows, names

DRAWS = int(os.environ.get("LACUNAR_DRAWS", "24"))
MOMENT = pd.Timestamp("2025-04-10 09:30")


# -- columns: each draws n values ---------------------------------------------------------------------------------------


def floats(rng, n):
    return rng.normal(size=n) * 10.0 ** rng.integers(-3, 6)


def days(rng, n):
    return pd.Series(MOMENT.normalize() + pd.to_timedelta(rng.integers(0, 900, n), unit="D"))


def moments(rng, n):
    return pd.Series(MOMENT + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s"))


def words(rng, n, levels=4):
    return pd.Series([f"w{k}" for k in rng.integers(0, levels, n)], dtype=object)


def objects(values):
    return pd.Series([*values], dtype=object)


COLUMNS = {
    "float": lambda rng, n: pd.Series(floats(rng, n)),
    "float32": lambda rng, n: pd.Series(floats(rng, n).astype(np.float32)),
    "large": lambda rng, n: pd.Series(rng.normal(size=n) * 1e200),
    "int": lambda rng, n: pd.Series(rng.integers(-5, 50, n)),
    "uint8": lambda rng, n: pd.Series(rng.integers(0, 200, n).astype(np.uint8)),
    "long int": lambda rng, n: pd.Series(rng.integers(2**60, 2**62, n)),
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.5),
    "Int64": lambda rng, n: pd.Series(rng.integers(0, 9, n)).astype("Int64"),
    "Float32": lambda rng, n: pd.Series(floats(rng, n)).astype("Float32"),
    "boolean": lambda rng, n: pd.Series(rng.random(n) < 0.5).astype("boolean"),
    "string": lambda rng, n: words(rng, n).astype("string"),
    "text": words,
    "two words": lambda rng, n: words(rng, n, 2),
    "many words": lambda rng, n: words(rng, n, 10**6),
    "identifiers": lambda rng, n: objects(f"id{k}" for k in rng.permutation(n)),
    "odd text": lambda rng, n: objects(
        ["", " a", "ß\U0001f600", "-1e3x", "nan?", "a\0", "\ud800"][k] for k in rng.integers(0, 7, n)
    ),
    "text and numbers": lambda rng, n: objects(rng.choice([1, 2.5, "x"], n).astype(object)),
    "numbers as text": lambda rng, n: objects(map(str, rng.integers(0, 5, n))),
    "dates as text": lambda rng, n: days(rng, n).dt.strftime("%Y-%m-%d").astype(object),
    "moments as text": lambda rng, n: moments(rng, n).dt.strftime("%Y-%m-%dT%H:%M:%S+02:00").astype(object),
    "days": days,
    "moments": moments,
    "zone": lambda rng, n: moments(rng, n).dt.tz_localize("Europe/Berlin", ambiguous="NaT", nonexistent="NaT"),
    "UTC": lambda rng, n: moments(rng, n).dt.tz_localize("UTC"),
    "seconds": lambda rng, n: moments(rng, n).astype("datetime64[s]"),
    "date objects": lambda rng, n: objects(days(rng, n).dt.date),
    "datetime objects": lambda rng, n: objects(
        moment.to_pydatetime().replace(tzinfo=datetime.UTC) for moment in moments(rng, n)
    ),
    "timedelta": lambda rng, n: pd.Series(pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")),
    "period": lambda rng, n: days(rng, n).dt.to_period("M"),
    "category": lambda rng, n: words(rng, n).astype("category"),
    "ordered": lambda rng, n: pd.Series(pd.Categorical(words(rng, n), ["w2", "w0", "w1", "w3"], ordered=True)),
    "category of ints": lambda rng, n: pd.Series(rng.integers(0, 4, n)).astype("category"),
    "category of floats": lambda rng, n: pd.Series(rng.choice([0.5, 1.5], n)).astype("category"),
    "category of bools": lambda rng, n: pd.Series(rng.random(n) < 0.5).astype("category"),
    "category of days": lambda rng, n: (MOMENT.normalize() + pd.to_timedelta(pd.Series(rng.integers(0, 3, n)), unit="D"))
    .astype("category"),
    "cut": lambda rng, n: pd.cut(pd.Series(rng.normal(size=n)), 4),
    "unused levels": lambda rng, n: pd.Series(pd.Categorical(words(rng, n), [f"w{k}" for k in range(300)])),
    "decimal": lambda rng, n: objects(Decimal(int(k)) / 4 for k in rng.integers(0, 90, n)),
    "bool objects": lambda rng, n: objects(bool(k) for k in rng.integers(0, 2, n)),
    "sparse": lambda rng, n: pd.Series(pd.arrays.SparseArray(rng.integers(0, 3, n) * 1.0)),
    "arrow ints": lambda rng, n: pd.Series(rng.integers(0, 9, n)).astype("int64[pyarrow]"),
    "arrow text": lambda rng, n: words(rng, n).astype("string[pyarrow]"),
    "nothing": lambda rng, n: pd.Series(np.full(n, np.nan)),
    "no objects": lambda rng, n: objects([None] * n),
    "no days": lambda rng, n: pd.Series(pd.DatetimeIndex([pd.NaT] * n)),
    "no levels": lambda rng, n: pd.Series(pd.Categorical([None] * n, ["a", "b"])),
    "constant": lambda rng, n: pd.Series(np.full(n, 3.25)),
    "constant text": lambda rng, n: objects(["same"] * n),
    "constant day": lambda rng, n: pd.Series([MOMENT.normalize()] * n),
}  # fmt: skip
NAMES = ("age", "Größe (cm)", "a b", "x0", "class", "0", "Ünïcode ☃", "predict", "a\nb")


def holed(column, rng):
    """The column with missing entries, where its type has any."""
    share = rng.choice([0.0, 0.2, 0.6])
    hidden = rng.random(len(column)) < share
    return column.mask(hidden) if hidden.any() else column


def drawn_frame(rng, n):
    """One to six columns of any kinds, in any order; one may stand there twice."""
    kinds = rng.choice(list(COLUMNS), rng.integers(1, 7), replace=True)
    columns = [holed(COLUMNS[kind](rng, n), rng) for kind in kinds]
    if rng.random() < 0.2:
        columns.append(columns[0].copy())
    frame = pd.concat(columns, axis=1)
    named = rng.random() < 0.8
    frame.columns = list(rng.permutation(NAMES)[: len(columns)]) if named else range(len(columns))
    return frame


def in_library(frame, rng):
    """The frame as pandas, polars or Arrow, or as an array of objects."""
    kind = rng.choice(["pandas", "pandas", "pandas", "polars", "arrow", "objects"])
    if kind == "objects":
        return frame.astype(object).to_numpy()
    if kind == "pandas" or not all(isinstance(name, str) for name in frame.columns):
        return frame
    try:
        if kind == "polars":
            return pytest.importorskip("polars").from_pandas(frame)
        return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    except Exception:  # a type that the other library lacks
        return frame


LABELS = {
    "text": lambda codes: np.array(["ja", "nein", "weiß nicht"])[codes],
    "objects": lambda codes: np.array(["ja", "nein", "weiß nicht"], dtype=object)[codes],
    "missing": lambda codes: np.array(["ja", None, "nein"], dtype=object)[codes],
    "bool": lambda codes: codes > 0,
    "bool or missing": lambda codes: np.array([True, None, False], dtype=object)[codes],
    "boolean": lambda codes: pd.array([[True, False, None][code] for code in codes], dtype="boolean"),
    "int": lambda codes: codes - 1,
    "int8": lambda codes: codes.astype(np.int8),
    "big-endian": lambda codes: codes.astype(">i4"),
    "float": lambda codes: np.array([4.0, 5.0, np.nan])[codes],
    "Int64": lambda codes: pd.array([[3, 7, None][code] for code in codes], dtype="Int64"),
    "string": lambda codes: pd.array([["a", "b", None][code] for code in codes], dtype="string"),
    "category": lambda codes: pd.Series(pd.Categorical.from_codes(codes, ["z", "y", "x"])),
    "one class": lambda codes: np.full(len(codes), "only"),
}
TARGETS = {
    "float": lambda rng, n: rng.normal(size=n),
    "float32": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "big-endian": lambda rng, n: rng.normal(size=n).astype(">f8"),
    "int": lambda rng, n: rng.integers(0, 30, n),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "missing": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    "Float64": lambda rng, n: pd.Series(rng.normal(size=n)).astype("Float64"),
    "Int64": lambda rng, n: pd.Series(rng.integers(0, 30, n)).astype("Int64"),
    "two": lambda rng, n: rng.normal(size=(n, 2)),
    "two, some missing": lambda rng, n: np.where(rng.random((n, 2)) < 0.3, np.nan, rng.normal(size=(n, 2))),
    "constant": lambda rng, n: np.full(n, 7.0),
}


def drawn_members(rng, classify):
    """Mostly one or two members: what is saved differs from member to member, and all five take a second."""
    names = members_of(labels=classify)
    return (
        "auto" if rng.random() < 0.04 else [str(name) for name in rng.choice(names, rng.integers(1, 3), replace=False)]
    )


def drawn_model(rng, n):
    """A learner, or what stands around one, and a target for it."""
    classify, around = rng.random() < 0.5, rng.choice(["none", "none", "none", "conformal", "pipeline"])
    codes = rng.permutation(np.arange(n) % 3)
    y = LABELS[rng.choice(list(LABELS))](codes) if classify else TARGETS[rng.choice(list(TARGETS))](rng, n)
    if around != "none" and (np.ndim(y) > 1 or pd.isna(y).any()):  # which the learner alone takes
        y = codes if classify else codes * 1.5
    if around == "pipeline":
        encoder = TableEncoder(text="drop", categories=str(rng.choice(["onehot", "ordinal"])))
        return make_pipeline(encoder, KarmaClassifier() if classify else KarmaRegressor()), y
    kind = LacunarClassifier if classify else LacunarRegressor
    learner = kind(members=drawn_members(rng, classify), cv=2, random_state=0)
    if around == "none":
        return learner, y
    learner.set_params(members=["logistic"] if classify else ["forest"])
    return (MaskConformalClassifier if classify else MaskConformalRegressor)(learner, cv=2), y


ANSWERS = {
    "predict": {}, "predict_proba": {}, "predict_log_proba": {}, "decision_function": {}, "predict_set": {"level": 0.7},
    "predict_interval": {"level": 0.7}, "predict_quantiles": {"level": [0.3, 0.8]}, "value_of_measuring": {}, "transform": {},
}  # fmt: skip


def answers(model, X):
    """All that a fitted model says of rows; an error where it says that instead."""
    said = {}
    for verb, options in ANSWERS.items():
        if hasattr(model, verb):
            try:
                said[verb] = getattr(model, verb)(X, **options)
            except ValueError as error:
                said[verb] = str(error)
    return said


def assert_same_answers(model, loaded, X):
    before, after = answers(model, X), answers(loaded, X)
    assert before.keys() == after.keys()
    for verb, values in before.items():
        assert type(values) is type(after[verb]), verb
        np.testing.assert_array_equal(after[verb], values, err_msg=verb)
        if isinstance(values, np.ndarray):  # a file has one order of bytes
            assert after[verb].dtype == values.dtype.newbyteorder("="), verb


def saved_and_loaded(model, tmp_path):
    save_model(model, tmp_path / "model")
    return load_model(tmp_path / "model")


@pytest.mark.parametrize(
    "number", [number if number < 8 else pytest.param(number, marks=pytest.mark.slow) for number in range(DRAWS)]
)
def test_a_drawn_frame(number, tmp_path):
    rng = np.random.default_rng([7, number])
    n = int(rng.integers(24, 60))
    X = in_library(drawn_frame(rng, n), rng)
    model, y = drawn_model(rng, n)
    encoder = TableEncoder(text=str(rng.choice(["error", "drop"])), categories=str(rng.choice(["onehot", "ordinal"])))
    later = X.slice(0, n // 2) if hasattr(X, "slice") else X[: n // 2]
    for fitted, target in ((encoder, None), (model, y)):
        try:
            fitted.fit(X, target)
        except (ValueError, TypeError):
            continue  # what `fit` refuses is not the subject here; the columns one by one are below
        loaded = saved_and_loaded(fitted, tmp_path)
        for rows in (X, later):
            assert_same_answers(fitted, loaded, rows)
        assert_same_answers(fitted, saved_and_loaded(loaded, tmp_path), later)


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_is_taken_and_there_again(kind, tmp_path):
    rng = np.random.default_rng(1)
    frame = COLUMNS[kind](rng, 40).to_frame("c")
    for model in (TableEncoder(), LacunarClassifier(members=["logistic"], cv=2)):
        model.fit(frame, np.arange(40) % 2)
        assert_same_answers(model, saved_and_loaded(model, tmp_path), frame)


@pytest.mark.parametrize("named", [True, False])
def test_a_wrapper_of_a_learner_of_frames_is_there_again(named, tmp_path):
    """Dates, text and numbers, of which an array could hold the last alone."""
    rng = np.random.default_rng(1)
    for kinds in (["days"], ["zone", "category", "float"], ["boolean", "Int64"]):
        frame = pd.concat(
            [COLUMNS[kind](rng, 40) for kind in kinds], axis=1, keys=kinds if named else range(len(kinds))
        )
        model = MaskConformalClassifier(LacunarClassifier(members=["logistic"], cv=2), cv=2)
        model.fit(frame, np.arange(40) % 2)
        assert_same_answers(model, saved_and_loaded(model, tmp_path), frame)


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label_is_there_again(kind, tmp_path):
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(42, 2)), np.arange(42) % 3
    y = LABELS[kind](codes)
    models = [LacunarClassifier(members=["logistic"], cv=2)]
    if not pd.isna(y).any():
        models += [KarmaClassifier(), MatrixCompletionClassifier(lam=1.0, mu=1e-2)]
    for model in models:
        model.fit(X, y)
        assert_same_answers(model, saved_and_loaded(model, tmp_path), X)


def test_learners_of_frames_in_files_of_the_command(tmp_path):
    """`lacunar fit` saves a `TableModel`: dates and text, to a learner that takes frames and to one that takes numbers."""
    rng = np.random.default_rng(0)
    frame = pd.concat(
        [COLUMNS[kind](rng, 60) for kind in ("days", "text", "float")], axis=1, keys=["day", "word", "age"]
    )
    problem = load_problem(frame.assign(y=np.where(np.arange(60) % 2, "u", "v")), "y")
    for learner, frames in ((LacunarClassifier(members=["logistic"]), True), (KarmaClassifier(), False)):
        model = TableModel(learner).fit(problem, frames=frames)
        assert_same_answers(model, saved_and_loaded(model, tmp_path), frame)


def test_a_table_of_which_a_part_is_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "MOST_FOLDED", 1000)
    rng = np.random.default_rng(0)
    frame = pd.concat(
        [COLUMNS[kind](rng, 1500) for kind in ("days", "text", "float")], axis=1, keys=["day", "word", "age"]
    )
    model = LacunarClassifier(members=["logistic"]).fit(frame, np.arange(1500) % 2)
    assert_same_answers(model, saved_and_loaded(model, tmp_path), frame)


# -- the rows that a loaded model is asked ------------------------------------------------------------------------------


def test_every_kind_of_the_encoder_has_an_example_that_it_reads():
    frame = pd.DataFrame({
        "number": [1.0, 2.0], "category": ["a", "b"], "date": [MOMENT.normalize()] * 2, "datetime": [MOMENT] * 2,
        "empty": [None, None], "dropped": ["x", "y"],
    })  # fmt: skip
    assert set(frame) == set(_EXAMPLES)
    encoder = TableEncoder(text="drop", max_categories=2).fit(frame)
    encoder.kinds_[-1], encoder.categories_[-1] = "dropped", None
    assert encoder.kinds_ == list(frame)
    nothing, examples = encoder._trial_rows()
    assert np.isnan(encoder.transform(nothing)).all()
    assert np.isfinite(encoder.transform(examples)).all()


def test_classes_that_take_text_say_what_a_loaded_one_is_asked():
    """Others are asked rows of numbers, which a column of another kind cannot read."""
    for module, name in registry.CLASSES.values():
        cls = getattr(importlib.import_module(module), name)
        if all(parameter.default is not parameter.empty for parameter in inspect.signature(cls).parameters.values()):
            tags = cls().__sklearn_tags__().input_tags
            assert hasattr(cls, "_trial_rows") or not tags.string or not tags.two_d_array, cls


def test_the_rows_that_are_asked_follow_what_reads_them():
    X = pd.DataFrame({"a": ["u", "v"] * 10, "b": np.arange(20.0)})
    y = np.arange(20) % 2
    encoder = TableEncoder().fit(X)
    assert [rows.tolist() for rows in trial_rows(make_pipeline(encoder, KarmaClassifier()))] == [
        [[None, None]],
        [["u", 0.5]],
    ]
    columns = ColumnTransformer([("e", TableEncoder(), ["a", "b"])]).fit(X)
    assert [rows.tolist() for rows in trial_rows(columns)] == [[[None, None]]]
    assert [rows.shape for rows in trial_rows(KarmaClassifier().fit(X[["b"]], y))] == [(1, 1), (1, 1)]
    for unfitted in (KarmaClassifier(), TableEncoder(), LacunarClassifier(), MaskConformalClassifier(), TableModel()):
        assert trial_rows(unfitted) == []


@pytest.mark.parametrize("around", [lambda model: model, lambda model: MaskConformalClassifier(model, cv=2)])
def test_parts_of_other_columns_are_refused(around, tmp_path):
    frame = pd.DataFrame({"a": ["u", "v"] * 20, "b": np.arange(40.0), "day": [MOMENT] * 40})
    model = around(LacunarClassifier(members=["logistic"], cv=2)).fit(frame, np.arange(40) % 2)
    model.n_features_in_, model.feature_names_in_ = 2, model.feature_names_in_[:2]
    with pytest.raises(ValueError, match="not a sound model file"):
        saved_and_loaded(model, tmp_path)
