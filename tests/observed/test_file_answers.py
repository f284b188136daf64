"""Predictions, codes and scores of rows in a file: block by block, and to the bit those of the same rows in memory."""

import threading
import zlib

import numpy as np
import pytest
from test_blocks import refooted, small  # noqa: F401

import lacunar.karma
from lacunar import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
    Observed,
)
from lacunar.karma import KarmaFeatures
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor, SLRMRegressor
from lacunar.observed import ObservedFile, write_batches
from lacunar.papers.subspace import PrintedPOPCA

LABELS = np.array(["ant", "bee", "cicada"])


@pytest.fixture
def rows(small, tmp_path):  # noqa: F811
    """Rows, numbers, words and weights, and the files of both kinds of labels, of several blocks each."""
    rng = np.random.default_rng(0)
    made = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 12)) + 0.2 * rng.normal(size=(400, 12))
    y, words = made[:, 0] + 0.1 * rng.normal(size=400), LABELS[np.digitize(made[:, 1], [-1, 1])]
    made[rng.random(made.shape) < 0.5] = np.nan
    made[7] = np.nan
    table, weight = Observed.from_dense(made), rng.random(400)
    files = [write_batches(tmp_path / name, [(table, each, weight)]) for name, each in (("y", y), ("words", words))]
    assert len(list(files[0])) > 5
    return table, y, words, weight, *files


CLASSIFIERS = {
    "table": KarmaOnlineClassifier(),
    "table of gamma 1": KarmaOnlineClassifier(1),
    "stored rows": KarmaOnlineClassifier(2.5),
    "batch, table": KarmaClassifier(solver="primal", loss="logistic"),
    "batch, Gram": KarmaClassifier(solver="gram"),
}
REGRESSORS = {
    "KARMA": KarmaOnlineRegressor(),
    "KARMA, stored rows": KarmaOnlineRegressor(2.5),
    "KARMA, Gram": KarmaRegressor(),
    "SLRM": SLRMRegressor(2, max_iter=3, random_state=0),
    "SLRM online": SLRMOnlineRegressor(2, random_state=0),
}
SUBSPACES = {
    "POPCA": POPCA(2, random_state=0),
    "POPCA, least squares": PrintedPOPCA(2),
    "PETRELS": PETRELS(2, random_state=0),
    "PETRELS, shared": PETRELS(2, random_state=0, correlation="shared"),
    "GROUSE": GROUSE(2, random_state=0),
}


def same(found, expected):
    for mine, theirs in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, expected)), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(model, rows):
    table, _, words, weight, _, file = rows
    model.fit(table, words)
    for method in ("predict", "decision_function", "predict_proba"):
        same(getattr(model, method)(file), getattr(model, method)(table))
    assert model.score(file) == model.score(table, words, weight) != model.score(table, words)
    assert model.score(file, words) == model.score(table, words)


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors(model, rows):
    table, y, _, weight, file, _ = rows
    model.fit(table, y)
    same(model.predict(file), model.predict(table))
    assert model.score(file) == model.score(table, y, weight) != model.score(table, y)
    if isinstance(model, SLRMRegressor | SLRMOnlineRegressor):
        same(model.transform(file), model.transform(table))
        same(model.impute(file), model.impute(table))
    if isinstance(model, SLRMRegressor):
        same(model.predict(file, return_std=True), model.predict(table, return_std=True))


@pytest.mark.parametrize("model", SUBSPACES.values(), ids=SUBSPACES)
def test_subspaces(model, rows):
    table, file = rows[0], rows[4]
    model.fit(table)
    same(model.transform(file), model.transform(table))
    same(model.impute(file), model.impute(table))
    if isinstance(model, POPCA):
        same(model.transform(file, return_std=True), model.transform(table, return_std=True))
        assert model.score(file) == model.score(table)
    elif hasattr(model, "score_samples"):
        same(model.score_samples(file), model.score_samples(table))


def test_frames_where_they_are_asked_for(rows):
    pandas = pytest.importorskip("pandas")
    table, file = rows[0], rows[4]
    model = POPCA(2, random_state=0).fit(table).set_output(transform="pandas")
    for method in (model.transform, model.impute):
        pandas.testing.assert_frame_equal(method(file), method(table))


def test_a_file_of_no_rows_and_one_of_other_columns(rows, tmp_path):
    table, y, *_ = rows
    model = SLRMRegressor(2, max_iter=3, random_state=0).fit(table, y)
    table[:0].save(tmp_path / "none")
    with pytest.raises(ValueError, match="Found array with 0 sample"):
        model.predict(ObservedFile(tmp_path / "none"))
    Observed.from_dense(np.eye(3)).save(tmp_path / "narrow")
    with pytest.raises(ValueError, match="X has 3 features, but SLRMRegressor is expecting 12"):
        model.predict(ObservedFile(tmp_path / "narrow"))
    with pytest.raises(ValueError, match="y must be the labels of the rows where a file has none"):
        model.score(ObservedFile(tmp_path / "narrow"))


def test_a_damaged_file_is_refused_by_block_and_row(rows, tmp_path):
    model = KarmaOnlineRegressor().fit(*rows[:2])
    entry, path = rows[4]._file.table[2], tmp_path / "y"
    start, stop = int(entry["offset"]), int(entry["offset"] + entry["size"] - entry["labels"] - entry["weights"])
    data = bytearray(path.read_bytes())
    data[start + 40] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="block 2 does not match its checksum"):
        model.predict(ObservedFile(path))
    data[start + 32 : start + 41] = b"\xff" * 9
    forged = bytes(data).replace(
        int(entry["crc32"]).to_bytes(4, "little"), zlib.crc32(data[start:stop]).to_bytes(4, "little")
    )
    path.write_bytes(refooted(forged))
    with pytest.raises(
        ValueError, match="y' is not a sound lacunar file: block 2: its row 0 has more entries than columns"
    ):
        model.predict(ObservedFile(path))


def test_a_message_about_a_row_says_where_its_block_begins(rows, tmp_path):
    table, y, *_ = rows
    model = SLRMRegressor(2, max_iter=3, random_state=0).fit(table, y)
    model.scale_ = np.full(12, 1e-300)
    large = np.ones(table.nnz)
    large[-3] = 1e200
    file = write_batches(tmp_path / "large", [table.with_values(large)])
    with pytest.raises(ValueError, match="row") as caught:
        model.predict(file)
    begins = len(table) - len(list(file)[-1])
    assert caught.value.__notes__ == [f"Rows of this message count from row {begins} of {file!r}."]


def test_an_interrupt_ends_the_thread_that_reads(rows, monkeypatch):
    table, y, *_, file, _ = rows
    model, before, seen = KarmaOnlineRegressor().fit(table, y), threading.active_count(), []

    def interrupted(self, X):
        seen.append(len(X))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return np.zeros((len(X), 1))

    monkeypatch.setattr(KarmaOnlineRegressor, "_evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.predict(file)
    assert len(seen) == 3
    assert threading.active_count() == before


@pytest.mark.parametrize("kind", [KarmaClassifierCV, KarmaRegressorCV])
@pytest.mark.parametrize("many", [False, True])
def test_searches(kind, many, rows, monkeypatch):
    """The one that fits a selection, and the one that fits a table to many rows."""
    if many:
        monkeypatch.setattr("lacunar.karma.cv._MANY", 100)
    table, y, words, _, numbers, labels = rows
    model = kind(max_search_rows=100, average=1, random_state=0).fit(table, y if kind is KarmaRegressorCV else words)
    file = numbers if kind is KarmaRegressorCV else labels
    for method in ("predict",) if kind is KarmaRegressorCV else ("predict", "decision_function", "predict_proba"):
        same(getattr(model, method)(file), getattr(model, method)(table))
    assert np.isfinite(model.score(file))


@pytest.mark.parametrize("method", ["exact", "nystroem"])
def test_features(method, rows):
    table, file = rows[0], rows[-1]
    model = KarmaFeatures(method=method, n_components=20, random_state=0).fit(table)
    found, expected = model.transform(file), model.transform(table)
    assert type(found) is type(expected)
    if method == "exact":
        found, expected = found.toarray(), expected.toarray()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "name", [name for name in lacunar.karma.__all__ if hasattr(getattr(lacunar.karma, name), "fit")]
)
def test_every_asking_method_of_karma_takes_a_file(name):
    """A method that a class writes anew is wrapped again, or it refuses files."""
    kind = getattr(lacunar.karma, name)
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        for owner in kind.__mro__:
            if method in vars(owner) and owner.__module__.startswith("lacunar"):
                step = getattr(vars(owner)[method], "fn", vars(owner)[method])  # what `available_if` holds
                while "over_files" not in step.__code__.co_qualname and hasattr(step, "__wrapped__"):
                    step = step.__wrapped__
                assert "over_files" in step.__code__.co_qualname, f"{name}.{method}"
                break
