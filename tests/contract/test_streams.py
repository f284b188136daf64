"""Every estimator with `partial_fit` fits from every source of batches by one verb, to the bit as from arrays in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor, Observed
from lacunar.completion import Features, OnlineMatrixClassifier, read_pair_batches
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor
from lacunar.observed import ObservedFile, Triplets, read_batches
from lacunar.papers.completion import MatrixExponentiatedGradient, PrintedMEG
from lacunar.papers.karma import PrintedKarmaClassifier, PrintedKarmaRegressor
from lacunar.papers.slrm import PrintedSLRM
from lacunar.papers.subspace import PrintedPOPCA
from lacunar.persistence.registry import CLASSES, class_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")

N, D, SIZE = 230, 8, 50
CLASSES_OF_Y = {"classes": ["no", "yes"]}


def table():
    """Rows of rank 3 with holes, observed zeros and empty rows, the last among them; labels by the first column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) @ rng.normal(size=(3, D)) + 0.1 * rng.normal(size=(N, D))
    y = X[:, 0] + 0.1
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.4] = np.nan
    X[[3, 70, N - 1]] = np.nan
    return X, y


X, NUMBERS = table()
WORDS = np.where(NUMBERS > 0, "yes", "no")
HOLES = np.where(np.arange(N) % 5 == 2, np.nan, NUMBERS)  # labels of which some are unknown
SIDE = np.random.default_rng(1).normal(size=(max(N, D), 3))

# How to make it, its labels, and the numbers that tell two fits apart.
ROWS = {
    "KarmaOnlineClassifier primal": (
        lambda: KarmaOnlineClassifier(),
        WORDS,
        lambda m: [m.decision_function(X)],
    ),
    "KarmaOnlineClassifier support": (
        lambda: KarmaOnlineClassifier(2.5, loss="logistic", budget=40),
        WORDS,
        lambda m: [m.decision_function(X)],
    ),
    "KarmaOnlineRegressor primal": (lambda: KarmaOnlineRegressor(), NUMBERS, lambda m: [m.predict(X)]),
    "KarmaOnlineRegressor support": (lambda: KarmaOnlineRegressor(2.5), NUMBERS, lambda m: [m.predict(X)]),
    "PrintedKarmaClassifier": (lambda: PrintedKarmaClassifier(), WORDS, lambda m: [m.decision_function(X)]),
    "PrintedKarmaRegressor": (lambda: PrintedKarmaRegressor(), NUMBERS, lambda m: [m.predict(X)]),
    "SLRMOnlineRegressor": (
        lambda: SLRMOnlineRegressor(3, random_state=0),
        HOLES,
        lambda m: [m.predict(X), m.components_],
    ),
    "SLRMOnlineRegressor per row": (
        lambda: SLRMOnlineRegressor(3, correlation="per-column", random_state=0),
        HOLES,
        lambda m: [m.predict(X), m.components_],
    ),
    "PrintedSLRM": (
        lambda: PrintedSLRM(3, gamma=1 - 1e-9, random_state=0),
        HOLES,
        lambda m: [m.predict(X), m.components_],
    ),
    "PrintedPOPCA": (lambda: PrintedPOPCA(3), None, lambda m: [m.components_, m.second_moment_]),
    "POPCA": (lambda: POPCA(3, refine=0), None, lambda m: [m.components_, m.mean_, m.get_covariance()]),
    "PETRELS": (lambda: PETRELS(3, random_state=0), None, lambda m: [m.components_, m.residual_]),
    "PETRELS shared": (
        lambda: PETRELS(3, correlation="shared", random_state=0),
        None,
        lambda m: [m.components_, m.residual_],
    ),
    "GROUSE": (lambda: GROUSE(3, random_state=0), None, lambda m: [m.components_, m.residual_]),
}
PAIRS = {
    "OnlineMatrixClassifier": lambda: OnlineMatrixClassifier(),
    "OnlineMatrixClassifier features": lambda: OnlineMatrixClassifier(Features(SIDE), Features(SIDE)),
    "MatrixExponentiatedGradient": lambda: MatrixExponentiatedGradient(),
    "PrintedMEG": lambda: PrintedMEG(eta=0.3, gamma=0.5, D=8.0, m=1000, n=1000, random_state=0),
}


def test_every_estimator_with_partial_fit_is_here():
    found = {name.rpartition(".")[2] for name in CLASSES if hasattr(class_of(name, CLASSES), "partial_fit")}
    assert found == {name.split()[0] for name in (*ROWS, *PAIRS)}


# -- sources of rows --------------------------------------------------------------------------------------------------


def cuts():
    return [slice(start, start + SIZE) for start in range(0, N, SIZE)]


def wide(y):
    columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(D)}  # NaN becomes null
    return pa.table(columns if y is None else columns | {"y": pa.array(y, from_pandas=True)})


def parts(made):
    """A folder's files: three of uneven length and with small row groups."""
    for number, (start, stop) in enumerate(((0, 77), (77, 90), (90, made.num_rows))):
        yield f"part-{number}.parquet", made.slice(start, stop - start)


def folder(made, tmp_path):
    for name, piece in parts(made):
        pq.write_table(piece, tmp_path / name, row_group_size=33)
    return tmp_path


def lines():
    row, col = np.nonzero(~np.isnan(X))
    return pa.table({"row": row, "col": col, "value": X[row, col], "when": np.arange(len(row)) // 3})


def sparse(rows):
    seen = ~np.isnan(rows)
    made = sp.coo_array((rows[seen], np.nonzero(seen)), shape=rows.shape).tocsr()
    assert made.nnz == seen.sum(), "stored zeros are observed"
    return made


def stored(tmp_path):
    Observed.from_dense(X).save(tmp_path / "rows.observed")
    return ObservedFile(tmp_path / "rows.observed")


def each(convert):
    def batches(y, tmp_path):
        return ((convert(X[cut]), None if y is None else y[cut]) for cut in cuts())

    return batches


def by_column(make):
    return lambda y, tmp_path: read_batches(make(wide(y), tmp_path), size=SIZE, target=None if y is None else "y")


def triplets_in_a_folder(y, tmp_path):
    if y is None:
        names = Triplets(D, n_rows=N)
    else:
        np.save(tmp_path / "y.npy", y)
        names, y = Triplets(D), np.load(tmp_path / "y.npy", mmap_mode="r")
    (tmp_path / "lines").mkdir()
    return read_batches(folder(lines(), tmp_path / "lines"), size=SIZE, target=y, triplets=names)


SOURCES = {
    "an ObservedFile": lambda y, tmp_path: read_batches(stored(tmp_path), size=SIZE, target=y),
    "arrays": each(lambda rows: rows),
    "frames": each(lambda rows: pd.DataFrame(rows, columns=[f"c{j}" for j in range(D)])),
    "sparse matrices": each(sparse),
    "tables of observed entries": each(Observed.from_dense),
    "a record batch reader": by_column(
        lambda made, _: pa.RecordBatchReader.from_batches(made.schema, made.to_batches(31))
    ),
    "a list of record batches": by_column(lambda made, _: made.to_batches(max_chunksize=SIZE + 9)),
    "a folder of wide rows": by_column(folder),
    "a folder of triplets": triplets_in_a_folder,
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", ROWS)
def test_rows_fit_alike_from_every_source(name, source, tmp_path):
    make, y, answers = ROWS[name]
    options = CLASSES_OF_Y if y is WORDS else {}
    whole = make()
    for number, cut in enumerate(cuts()):
        whole.partial_fit(X[cut], *([] if y is None else [y[cut]]), **({} if number else options))
    made = make().fit(SIDE[:9, [0, 1, 2, 2]], [0, 1] * 4 + [1]).fit_batches(SOURCES[source](y, tmp_path), **options)
    for one, other in zip(answers(made), answers(whole), strict=True):
        np.testing.assert_array_equal(one, other)
    assert made.n_features_in_ == D


# -- sources of pairs -------------------------------------------------------------------------------------------------


def entries():
    made = lines()
    signs = np.where(made["value"].to_numpy() > 0, 1, -1)
    return made.drop_columns(["value"]).append_column("label", pa.array(signs))


def each_pairs(convert):
    def batches(tmp_path):
        row, col, y = (entries()[name].to_numpy() for name in ("row", "col", "label"))
        return ((convert(row[cut], col[cut]), y[cut]) for cut in (slice(k, k + SIZE) for k in range(0, len(y), SIZE)))

    return batches


def stored_labels(tmp_path):
    seen = Observed.from_dense(X)
    seen.with_values(np.where(seen.values > 0, 1.0, -1.0)).save(tmp_path / "labels.observed")
    return ObservedFile(tmp_path / "labels.observed")


def reader(tmp_path):
    return pa.RecordBatchReader.from_batches(entries().schema, entries().to_batches(31))


PAIR_SOURCES = {
    "an ObservedFile": lambda tmp_path: read_pair_batches(stored_labels(tmp_path), size=SIZE),
    "tuples of arrays": each_pairs(lambda row, col: (row, col)),
    "arrays": each_pairs(lambda row, col: np.column_stack([row, col])),
    "frames": each_pairs(lambda row, col: pd.DataFrame({"row": row, "col": col})),
    "a record batch reader": lambda tmp_path: read_pair_batches(reader(tmp_path), size=SIZE),
    "a list of record batches": lambda tmp_path: read_pair_batches(entries().to_batches(67), size=SIZE, time="when"),
    "a folder of lines in time order": lambda tmp_path: read_pair_batches(
        folder(entries(), tmp_path), size=SIZE, time="when"
    ),
}


@pytest.mark.parametrize("source", PAIR_SOURCES)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_fit_alike_from_every_source(name, source, tmp_path):
    whole = PAIRS[name]()
    for (row, col), y in each_pairs(lambda row, col: (row, col))(tmp_path):
        whole.partial_fit(row, col, y)
    made = PAIRS[name]().fit([(0, 1), (1, 0)], [1, -1]).fit_batches(PAIR_SOURCES[source](tmp_path))
    asked = np.argwhere(np.isnan(X))[:200]
    np.testing.assert_array_equal(made.decision_function(asked), whole.decision_function(asked))
    assert made.n_seen_ == whole.n_seen_ == int((~np.isnan(X)).sum())
    assert made.n_mistakes_ == whole.n_mistakes_


# -- what goes wrong --------------------------------------------------------------------------------------------------


def broken(y, at):
    for number, cut in enumerate(cuts()):
        rows = X[cut].copy()
        if number == at:
            rows[2, 1] = np.inf
        yield rows, None if y is None else y[cut]


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("name", ROWS)
def test_a_bad_batch_leaves_what_was_learned_before_it(name, at):
    make, y, answers = ROWS[name]
    options = CLASSES_OF_Y if y is WORDS else {}
    wanted = make().fit_batches(((X[cut], None if y is None else y[cut]) for cut in cuts()[: at or None]), **options)
    model = make() if at else make().fit_batches(((X[cut], None if y is None else y[cut]) for cut in cuts()), **options)
    with pytest.raises(ValueError, match="inf") as raised:
        model.fit_batches(broken(y, at), **options)
    assert raised.value.__notes__[-1] == f"Batch {at + 1} raised this; the first is 1."
    for one, other in zip(answers(model), answers(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_empty_batch_is_named():
    with pytest.raises(ValueError, match="0 sample") as raised:
        GROUSE(n_components=2).fit_batches([X[:20], X[:0]])
    assert raised.value.__notes__ == ["Batch 2 raised this; the first is 1."]


@pytest.mark.parametrize("name", [*ROWS, *PAIRS])
def test_no_batch_is_an_error_and_changes_nothing(name):
    model = ROWS[name][0]() if name in ROWS else PAIRS[name]()
    options = CLASSES_OF_Y if name in ROWS and ROWS[name][1] is WORDS else {}
    with pytest.raises(ValueError, match="batches must hold at least one"):
        model.fit_batches(iter([]), **options)
    assert not hasattr(model, "n_features_in_")
    if ROWS.get(name, (0, 0))[1] is not None:
        with pytest.raises(ValueError, match=r"batches must hold tuples \(X, y\).*; got ndarray"):
            model.fit_batches(iter([X[:3]]), **options)


@pytest.mark.parametrize("name", ROWS)
def test_one_table_or_its_path_is_no_sequence_of_batches(name, tmp_path):
    make, y = ROWS[name][:2]
    options = CLASSES_OF_Y if y is WORDS else {}
    for table in (X, pd.DataFrame(X), sp.csr_array(X), Observed.from_dense(X)):
        with pytest.raises(TypeError, match=r"iterable of batches; got a .* Pass \[\(X, y\)\] for one batch"):
            make().fit_batches(table, **options)
        with pytest.raises(TypeError, match=r"iterable of batches; got one batch \(X, y\)\. Pass \[\(X, y\)\]"):
            make().fit_batches((table, np.zeros(len(X))), **options)
    for path in ("t.csv", tmp_path / "t.csv"):
        with pytest.raises(TypeError, match=r"got the path '.*t\.csv'\. read_batches\(path\) .* chunksize"):
            make().fit_batches(path, **options)


def test_pairs_that_come_again_keep_what_was_learned():
    model = OnlineMatrixClassifier()
    with pytest.raises(ValueError, match="labels -1 and 1"):
        model.fit_batches([(([0, 1], [1, 2]), [1, -1]), (([0], [2]), [7])])
    assert model.n_seen_ == 2
    with pytest.raises(ValueError, match="of one length"):
        model.fit_batches([(([0, 1], [1]), [1, -1])])
    assert model.n_seen_ == 2
