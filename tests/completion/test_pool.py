"""The pool of experts that `OnlineMatrixClassifier` is by default."""

import copy
import pickle

import numpy as np
import pytest
from reference import pool as twin

from lacunar import _core
from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, OnlineMatrixClassifier
from lacunar.completion import pool as pool_module
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.persistence import load_model, save_model

RNG = np.random.default_rng(0)
RING = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
TABLE = {"kind": ["a", "b", "c"] * 4, "size": np.arange(12.0)}
SIDES = {
    "nothing": (None, None),
    "numbers": (Identity(12), Identity(12)),
    "features": (Features(TABLE), Features(TABLE)),
    "one graph": (Graph(RING, "spectral"), Graph(RING, "spectral")),
    "graph of rows": (Graph(RING, "spectral"), None),
    "kernel": (Kernel(np.eye(12) + 0.5), None),
    "several": ([Features(TABLE), Graph(RING)], [Features(TABLE), Features(TABLE["kind"])]),
    "function": (KernelFunction("gaussian", points=np.arange(12.0)[:, None]), None),
    "points that come": (KernelFunction("gaussian", length_scale=2.0), KernelFunction("gaussian", length_scale=0.5)),
}


def stream(n=300, seed=0):
    """Random pairs of 12 rows and 12 columns with a label of two factors and noise."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, 12, (2, n))
    u, v = rng.normal(size=(2, 12, 2))
    return i, j, np.where((u[i] * v[j]).sum(axis=1) + 0.5 * rng.normal(size=n) > 0, 1, -1)


def core(models, n_rows=12, n_cols=12, extra=0, features=None, **rule):
    side = {"levels": [], "groups": np.zeros((0, 0), np.int32), "wide": 0, "compared": np.zeros((0, 0))}
    sides = [
        {**side, "size": size, "phi": phi, "d": phi.shape[1]}
        for size, phi in zip((n_rows, n_cols), features or [np.zeros((0, 0))] * 2, strict=True)
    ]
    options = {
        **pool_module._RULE,
        "extra": extra,
        "same": False,
        "shared_ids": False,
        "bilinear": [pool_module._MODEL | m for m in models],
        **rule,
    }
    return _core.PairPool(options, *sides)


@pytest.fixture
def spread(monkeypatch):
    """Refits that take a tenth of the stream, so that short ones are cut in their midst."""
    monkeypatch.setitem(pool_module._RULE, "refit_share", 0.1)


def run(pool, i, j, y, extra=None):
    out, each = np.empty(len(y)), np.empty((len(y), pool.hedged))
    extra = np.zeros((len(y), 0)) if extra is None else extra
    pool.run(i.astype(np.int32), j.astype(np.int32), y.astype(float), extra, out, each)
    return out, each


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_biases_are_those_of_assumed_density_filtering(noise):
    i, j, y = stream()
    _, each = run(core([{"refit": False, "noise": noise}]), i, j, y)
    np.testing.assert_allclose(each[:, 3], twin.biases(i, j, y, noise), rtol=1e-12)


PRODUCTS = {"products": True, "refit": False, "row_bias": False, "col_bias": False, "common": 4.0}


@pytest.mark.parametrize("widths", [(3, 4), (1, 2), (5, 1)])
def test_products_of_features_are_those_of_assumed_density_filtering(widths):
    i, j, y = stream()
    phi, psi = (np.random.default_rng(d).normal(size=(12, d)) for d in widths)
    pool = core([PRODUCTS, {"refit": False}], features=(phi, psi))
    _, each = run(pool, i, j, y)
    np.testing.assert_allclose(each[:, 3], twin.products(phi, psi, i, j, y, 4.0), rtol=1e-9)
    np.testing.assert_allclose(each[:, 4], twin.biases(i, j, y), rtol=1e-12)  # not disturbed by what is rehearsed


def test_pairs_without_features_on_a_side_are_asked_by_those_of_the_other():
    """Of ids that are not known nothing but the constant is: the coefficients of the other side's features are learned as ever."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(12, 2))
    i, j = rng.integers(0, 12, (2, 600))
    pool = core([PRODUCTS], features=(phi, np.ones((12, 1))))
    run(pool, i, j, np.where(phi[i, 0] > 0, 1, -1))
    rows, unknown, out = np.arange(12, dtype=np.int32), np.full(12, -1, np.int32), np.empty(12)
    pool.ask(rows, unknown, unknown, unknown, np.zeros((12, 0)), out)
    assert np.array_equal(out > 0.5, phi[:, 0] > 0)


def test_features_are_replaced_by_as_many():
    phi = np.ones((12, 2))
    pool = core([PRODUCTS], features=(phi, phi))
    for side, wrong in ((0, phi[:3]), (1, np.ones((12, 3))), (2, phi), (-1, phi)):
        with pytest.raises(ValueError, match=r"phi|side"):
            pool.set_features(side, wrong)
    pool.set_features(1, 2 * phi)


# What both sides' graphs or kernels say together: error on a matrix of blocks, beside that of a pool that is told nothing.
POINTS = np.random.default_rng(1).normal(size=(60, 2))
BLOCKS = np.arange(60) // 12
CLIQUES = (BLOCKS[:, None] == BLOCKS) & ~np.eye(60, dtype=bool)
BOTH_SIDES = {
    "graphs": (Graph(CLIQUES.astype(float)), Graph(CLIQUES.astype(float))),
    "kernels": (Kernel(CLIQUES * 0.8 + np.eye(60)), Kernel(CLIQUES * 0.8 + np.eye(60))),
    "a graph and a kernel that grows": (
        Graph(CLIQUES.astype(float)),
        KernelFunction("partition", points=BLOCKS.tolist()),
    ),
}


@pytest.mark.parametrize("name", BOTH_SIDES)
def test_blocks_of_both_sides_are_found_from_few_pairs(name):
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], (5, 5))
    i, j = rng.integers(0, 60, (2, 900))
    y = signs[BLOCKS[i], BLOCKS[j]]
    told = OnlineMatrixClassifier(*BOTH_SIDES[name]).score_stream(i, j, y)
    assert told.error < 0.1
    assert told.error < 0.5 * OnlineMatrixClassifier().score_stream(i, j, y).error


@pytest.mark.parametrize("begun", [0, 30])
def test_points_of_a_growing_kernel_tell_of_those_that_come(begun):
    """Every column likes one side of a line; half of the points are asked about before any answer of theirs."""
    rng = np.random.default_rng(0)
    points = [tuple(point) for point in POINTS]
    known = {"points": points[:begun], "ids": points[:begun]} if begun else {}
    i, j, likes = rng.integers(0, 30, 800), rng.integers(0, 10, 800), rng.choice([-1, 1], 10)
    model = OnlineMatrixClassifier(KernelFunction("gaussian", length_scale=0.7, **known))
    model.partial_fit([points[k] for k in i], j, np.where(POINTS[i, 0] > 0, 1, -1) * likes[j])
    rows, cols = np.divmod(np.arange(300), 10)
    answers = np.where(POINTS[30 + rows, 0] > 0, 1, -1) * likes[cols]
    assert model.score([(points[30 + k], c) for k, c in zip(rows, cols, strict=True)], answers) > 0.8


@pytest.mark.parametrize(("wanders", "most"), [("all", 1.01), ("each row", 1.0)])
def test_rates_that_wander_are_followed_as_well_as_by_a_running_mean(wanders, most):
    """The log-odds of all pairs, of ids that stay for three, or of each of 20 rows wander; the running mean knows which, and how fast."""
    rng = np.random.default_rng(0)
    n, of_all = 6000, wanders == "all"
    i, j = (np.arange(n) // 3, np.arange(n) // 5) if of_all else rng.integers(0, 20, (2, n))
    keys, keep, step, rate = (np.zeros(n, int), 0.999, 0.05, 0.03) if of_all else (i, 0.96, 0.4, 0.1)
    odds, mean, y, loss = rng.normal(0, 1.5, 20), np.full(20, 0.5), np.empty(n), 0.0
    for t, k in enumerate(keys):
        y[t] = 1 if rng.random() < twin.sigmoid(odds[k]) else -1
        odds[k] = keep * odds[k] + rng.normal(0, step)
        loss -= np.log(mean[k] if y[t] > 0 else 1 - mean[k]) / n
        mean[k] += rate * ((y[t] > 0) - mean[k])
    assert OnlineMatrixClassifier().score_stream(i, j, y).loss < most * loss


def test_mixture_and_hedge_are_those_of_the_formulas():
    i, j, y = stream()
    pool = core([{"refit": False}], extra=1)
    extra = np.where(RNG.random(300) < 0.8, y, -y)[:, None] * 1.5
    out, each = run(pool, i, j, y, extra)
    experts = each[:, :-2]
    odds = np.log(experts / (1 - experts))
    known = np.array(
        [i[t] in i[:t] and j[t] in j[:t] for t in range(300)]
    )  # pairs with a new row or column have mixers of their own
    mixed, z = twin.mixer(odds[known], y[known], 0.2)
    np.testing.assert_allclose(each[known, -2], mixed, rtol=1e-9)
    before = np.zeros(300)
    before[known] = z
    corrected = twin.correction(odds, before, y, 0.02, i, j)
    assert np.array_equal(np.isfinite(corrected), known)
    np.testing.assert_allclose(each[known, -1], corrected[known], rtol=1e-9)
    expected, weights = twin.fixed_share(each, y)
    np.testing.assert_allclose(out, expected, rtol=1e-11)
    np.testing.assert_allclose(pool.weights(), weights, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_keeps_the_bound_of_fixed_share(seed):
    """At most log E + log T more than the best expert, and with a switch at t at most that of both parts."""
    i, j, y = stream(600, seed)
    out, each = run(core([{}, {"rank": 2}]), i, j, y)
    loss = -np.log(np.where(y > 0, out, 1 - out)).sum()
    losses = -np.log(np.where(y[:, None] > 0, each, 1 - each))
    T, E = each.shape
    assert loss <= losses.sum(axis=0).min() + np.log(E) + np.log(T + 1)
    for t in (100, 300):
        parts = losses[:t].sum(axis=0).min() + losses[t:].sum(axis=0).min()
        assert loss <= parts + np.log(E) + np.log(E - 1) + 2 * np.log(T + 1)


def test_a_sleeping_expert_changes_nothing_but_its_own_share():
    i, j, y = stream()
    awake, _ = run(core([{"refit": False}], extra=1), i, j, y, np.full((300, 1), np.nan))
    assert np.isfinite(awake).all()
    assert np.mean((awake > 0.5) == (y > 0)) > 0.5


def test_refits_reach_the_maximum_a_posteriori_of_biases():
    """Sweeps of the bound's updates, repeated, end where the gradient of the penalised log likelihood is 0."""
    i, j, y = stream(200)
    pool = core([{"sweeps": 300}], first_refit=200, refit_share=0)
    run(pool, i, j, y)
    state = pool.state(True)
    rows, cols = (state[f"model0_{name}"].reshape(12, 3) for name in ("rows", "cols"))
    g = state["model0_common"][0]
    slope = (y > 0) - twin.sigmoid(g + rows[i, 1] + cols[j, 1])
    for index, blocks, prior in ((i, rows, state["model0_row_prior"]), (j, cols, state["model0_col_prior"])):
        total = np.bincount(index, slope, 12) - (blocks[:, 1] - prior[0]) / prior[1]
        np.testing.assert_allclose(total, 0, atol=1e-5)
    assert abs(slope.sum() - g) < 1e-5


@pytest.mark.parametrize("name", SIDES)
def test_the_stream_may_be_cut_anywhere(name, spread):
    i, j, y = stream()
    rows, cols = SIDES[name]
    whole = OnlineMatrixClassifier(rows, cols).partial_fit(i, j, y)
    parts = OnlineMatrixClassifier(rows, cols)
    for cut in np.array_split(np.arange(300), [1, 8, 100, 244, 257]):
        parts.partial_fit(i[cut], j[cut], y[cut])
    single = OnlineMatrixClassifier(rows, cols)
    for each in zip(i.tolist(), j.tolist(), y.tolist(), strict=True):
        single.learn_one(*each)
    question = np.arange(12), np.arange(12)[::-1]
    for other in (parts, single):
        np.testing.assert_array_equal(other.decision_function(question), whole.decision_function(question))
        assert other.n_mistakes_ == whole.n_mistakes_


@pytest.mark.parametrize("name", SIDES)
def test_files_and_pickles_resume_exactly(name, tmp_path):
    i, j, y = stream()
    model = OnlineMatrixClassifier(*SIDES[name]).partial_fit(i[:150], j[:150], y[:150])
    save_model(model, tmp_path / "model.lacunar")
    model_again = load_model(tmp_path / "model.lacunar")
    pickled = pickle.loads(pickle.dumps(model))
    expected = model.score_stream(i[150:], j[150:], y[150:])
    for other in (model_again, pickled):
        found = other.score_stream(i[150:], j[150:], y[150:])
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(other.expert_weights_, model.expert_weights_)


def test_what_is_asked_changes_nothing_and_predictions_are_those_of_the_stream():
    i, j, y = stream()
    model, silent = OnlineMatrixClassifier(), OnlineMatrixClassifier()
    for each in zip(i.tolist(), j.tolist(), y.tolist(), strict=True):
        asked = model.decision_one(*each[:2])
        assert (asked >= 0) == (model.predict_one(*each[:2]) > 0)
        value = silent.score_stream([each[0]], [each[1]], [each[2]]).values[0]
        assert value == pytest.approx(asked, abs=1e-12)
        model.learn_one(*each)


def test_weights_have_names_and_a_path():
    i, j, y = stream()
    model = OnlineMatrixClassifier(Features(TABLE)).partial_fit(i, j, y)
    names = model.expert_names_
    assert len(names) == len(set(names)) == model.expert_weights_.shape[1]
    assert {"majority", "rank 2", "kind of rows x column"} <= set(names)
    np.testing.assert_allclose(model.expert_weights_.sum(axis=1), 1)
    trials, weights = model.expert_path_
    assert weights.shape == (len(trials), 1, len(names))
    assert (np.diff(trials) > 0).all()


def test_ids_without_a_vertex_get_the_prior_of_the_pool():
    i, j = np.arange(200) % 10, np.arange(200) // 20
    model = OnlineMatrixClassifier(unseen="prior").partial_fit(i, j, np.where(j < 5, 1, -1))
    assert model.predict_proba_one("new", 1)[1] > 0.8
    assert model.predict_proba_one("new", 8)[1] < 0.2


def test_new_ids_are_known_by_their_features():
    rng = np.random.default_rng(0)
    kind = np.array([0, 1] * 20)
    i, j = rng.integers(0, 40, 800), rng.integers(0, 6, 800)
    model = OnlineMatrixClassifier(Features({"kind": [str(k) for k in kind]}))
    model.partial_fit(i, j, np.where((kind[i] + j) % 2, 1, -1))
    model.add_row("new", {"kind": "1"})
    assert model.predict([("new", column) for column in range(6)]).tolist() == [1, -1] * 3


def test_new_rows_are_asked_about_by_their_group():
    """What a group says of a column counts most for rows that were never seen, though for those that were others know better.

    Without the rehearsal the error stays near that of the groups' majorities, but the log loss is .05 above that of their shares.
    """
    errors, losses = np.transpose([_beyond_the_groups(seed) for seed in range(5)])
    assert errors.max() < 0.02
    assert losses.mean() < 0


def _beyond_the_groups(seed):
    """Error and log loss on new rows, less those of the group's majority and of its share of each column."""
    rng = np.random.default_rng(seed)
    group, own = rng.integers(0, 2, 60), rng.normal(size=(60, 3))
    bills = rng.normal(size=(3, 120))
    vote = (2 * group[:, None] - 1) * rng.choice([-1.5, 1.5], 120) + own @ bills > 0
    i, j = np.divmod(rng.permutation(60 * 120), 120)
    old = i < 45
    model = OnlineMatrixClassifier(Features({"group": group.astype(str)})).fit((i[old], j[old]), vote[i, j][old])
    share = np.array([vote[:45][group[:45] == g].mean(axis=0) for g in (0, 1)]).clip(0.02, 0.98)[
        group[i[~old]], j[~old]
    ]
    p, y = model.predict_proba((i[~old], j[~old]))[:, 1], vote[i, j][~old]
    ours, theirs = (np.array([np.mean((q > 0.5) != y), -np.mean(np.log(np.where(y, q, 1 - q)))]) for q in (p, share))
    return ours - theirs


def test_it_finds_a_matrix_of_rank_one():
    rng = np.random.default_rng(0)
    signs = np.outer(rng.choice([-1, 1], 60), rng.choice([-1, 1], 40)) * np.where(rng.random((60, 40)) < 0.1, -1, 1)
    cells = rng.permutation(2400)
    i, j = cells // 40, cells % 40
    model = OnlineMatrixClassifier().fit((i[:500], j[:500]), signs[i, j][:500])
    assert model.score((i[500:], j[500:]), signs[i, j][500:]) >= 0.8


@pytest.mark.parametrize(
    "damage",
    [
        {"log_weights": np.array([0.0])},
        {"seen_rows": np.full(50, 99, np.int32)},
        {"seen_labels": np.zeros(50, np.int8)},
        {"path": np.zeros(3)},
        {"model0_rows": np.full(3, np.nan)},
        {"next_refit": -1.0},
        {"refit_place": np.array([99.0, 0, 0, 0, 0, 1, 1])},
        {"refit_place": np.array([0.0, 0, 0, 0, 1e6, 1, 1])},
        {"refit_place": np.array([0.0, 0, 0, 1e300, 0, 1, 1])},
    ],
)
def test_damaged_states_of_a_pool_are_refused(damage):
    i, j, y = stream(50)
    model = OnlineMatrixClassifier().partial_fit(i, j, y)
    kept = model.state()
    kept["pools"] = [kept["pools"][0] | damage]
    with pytest.raises(ValueError, match="state must"):
        OnlineMatrixClassifier.from_state(kept)


@pytest.mark.parametrize(
    "damage",
    [
        {"landmarks": [[[0, 0]], []]},
        {"landmarks": [[[99]], []]},
        {"landmarks": [[[-1]], []]},
        {"landmarks": [[], []]},
        {"landmarks": None},
        {"landmarks": [["a"], []]},
        {"side_features": [[{"rotation": np.zeros((0, 0)), "modes": np.full((0, 16), np.nan)}], []]},
        {"side_features": [[{"rotation": np.zeros((0, 0)), "modes": np.zeros((3, 16))}], []]},
    ],
)
def test_damaged_directions_of_a_kernel_are_refused(damage):
    i, j, y = stream(50)
    model = OnlineMatrixClassifier(KernelFunction("gaussian")).partial_fit(i, j, y)
    kept = model.state()
    other = OnlineMatrixClassifier.from_state(kept, rows=KernelFunction("gaussian"))
    np.testing.assert_array_equal(other.decision_function((i, j)), model.decision_function((i, j)))
    with pytest.raises(ValueError, match="state must"):
        OnlineMatrixClassifier.from_state(kept | damage, rows=KernelFunction("gaussian"))


def test_rows_and_columns_of_one_kind_learn_from_each_other():
    """Answers of (a, b) hold of (b, a): half of the pairs tells of the other half."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 40)
    names = np.array([f"v{k}" for k in range(40)])
    i, j = rng.integers(0, 40, (2, 500))
    y = np.where(group[i] == group[j], 1, -1)
    together = OnlineMatrixClassifier().score_stream(names[i], names[j], y)
    apart = OnlineMatrixClassifier().score_stream(names[i], np.char.add("w", names[j]), y)
    assert together.mistakes < 0.8 * apart.mistakes


def test_several_kinds_of_side_information():
    i, j, y = stream()
    sides = [Features(TABLE, ids=range(12)), Features({"odd": ["x", "y"] * 6})]
    model = OnlineMatrixClassifier(sides).partial_fit(i, j, y)
    assert {"kind of rows x column", "odd of rows x column"} <= set(model.expert_names_)
    alone = MatrixExponentiatedGradient(sides).partial_fit(i, j, y)
    model.add_row("new", [{"kind": "a", "size": 3.0}, {"odd": "x"}])
    for each in (model, alone):
        assert np.isfinite(each.decision_function([(3, 4)])).all()
    with pytest.raises(ValueError, match="a new id must come with 2 values"):
        model.add_row("other", [{"kind": "a"}])
    with pytest.raises(ValueError, match=r"numbers or strings|features"):
        model.add_row("other", [{"kind": "a", "size": 1.0}, {"nothing": 1}])
    np.testing.assert_array_equal(model.decision_function([("new", 3)]).shape, (1,))
    with pytest.raises(ValueError, match="same ids"):
        OnlineMatrixClassifier([Identity(3), Identity(4)]).fit([(0, 0)], [1])


def test_what_was_asked_before_a_twin_has_its_name_changes_nothing():
    i, j, y = stream(200)
    plain, asking = OnlineMatrixClassifier(), OnlineMatrixClassifier()
    for each in zip(i.tolist(), j.tolist(), y.tolist(), strict=True):
        asking.decision_one(each[1], each[0])
        asking.decision_one("nobody", each[0])
        plain.learn_one(*each)
        asking.learn_one(*each)
    np.testing.assert_array_equal(plain.decision_function((i, j)), asking.decision_function((i, j)))


@pytest.mark.parametrize("thresholds", [None, (2.0, 3.0)])
@pytest.mark.parametrize("cols", [None, KernelFunction("gaussian")], ids=["identity", "named"])
@pytest.mark.parametrize("rows", [KernelFunction("gaussian"), KernelFunction(lambda a, b: 1 / (1 + abs(a - b)))])
def test_asking_any_ids_in_any_order_changes_no_later_answer(rows, cols, thresholds):
    i, j, y = stream()
    y = y if thresholds is None else 1 + (i + j) % 4
    plain = OnlineMatrixClassifier(rows, cols, thresholds=thresholds).partial_fit(i[:100], j[:100], y[:100])
    strangers = np.arange(30, 0, -1)
    for order in (slice(None), slice(None, None, -1)):
        asking = OnlineMatrixClassifier(rows, cols, thresholds=thresholds)
        for each in strangers[order].tolist():
            asking.decision_one(each, each)
        asking.partial_fit(i[:100], j[:100], y[:100])
        asking.decision_function((np.roll(strangers[order], 7), i[:30]))
        kept = pickle.dumps(asking) if isinstance(rows.f, str) else None
        other = copy.deepcopy(plain).partial_fit(i[100:], j[100:], y[100:])
        for model in (asking, *([pickle.loads(kept)] if kept else [])):
            model.partial_fit(i[100:], j[100:], y[100:])
            model.decision_one(41, 17)
            question = strangers, np.roll(strangers, 3)
            np.testing.assert_array_equal(model.decision_function(question), other.decision_function(question))


def test_ratings_come_back_as_given():
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 12, (2, 600))
    stars = np.clip(1 + i % 3 + j % 3 + rng.integers(-1, 2, 600), 1, 5)
    model = OnlineMatrixClassifier(thresholds="auto").fit((i, j), stars)
    assert model.classes_.tolist() == [1, 2, 3, 4, 5]
    assert set(model.predict((i, j)).tolist()) <= {1, 2, 3, 4, 5}
    np.testing.assert_allclose(model.predict_proba((i, j)).sum(axis=1), 1)
    expected = model.predict_expected((i, j))
    assert np.abs(expected - (1 + i % 3 + j % 3)).mean() < 0.4
    assert model.score((i, j), stars) > np.bincount(stars).max() / 600
    assert pickle.loads(pickle.dumps(model)).classes_.tolist() == [1, 2, 3, 4, 5]
    named = OnlineMatrixClassifier(thresholds="auto").partial_fit([0], [0], [3], classes=[1, 2, 3, 4, 5])
    assert named.predict_proba([(0, 0)]).shape == (1, 5)
    with pytest.raises(ValueError, match="at most 127"):
        OnlineMatrixClassifier(thresholds=np.arange(128.0)).learn_one(0, 0, 3)
    with pytest.raises(ValueError, match=r"y must be known and finite; got nan in position 1"):
        OnlineMatrixClassifier(thresholds="auto").partial_fit([0, 1], [0, 1], [1.5, np.nan])
    with pytest.raises(ValueError, match="must find 2 to 20 ratings"):
        OnlineMatrixClassifier(thresholds="auto").partial_fit([0], [0], [3])
    with pytest.raises(ValueError, match="ratings must be known"):
        OnlineMatrixClassifier(thresholds="auto").decision_one(0, 0)


def test_no_rating_is_ruled_out_and_many_ratings_cost_no_more_than_an_even_guess():
    """Where the thresholds' own answers contradict each other, in a stream of few pairs and many ratings."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 12, (2, 400))
    stars = 1 + (i // 3 + j // 3 + rng.integers(0, 4, 400)) % 10
    score = OnlineMatrixClassifier(thresholds="auto").score_stream((i, j), stars)
    assert (np.diff(score.probabilities, axis=1) > 0).any()
    assert score.loss < np.log(10)
    model = OnlineMatrixClassifier(thresholds="auto").fit((i, j), stars)
    probabilities = model.predict_proba((i, j))
    assert probabilities.min() > 0.001
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_rating_teaches_all_thresholds():
    """One label says something of every threshold: with much of it unseen at one of them, less is lost than by asking that one alone."""
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 60, 3000), rng.integers(0, 40, 3000)
    odds = 1.5 * rng.normal(size=60)[i] + 1.5 * rng.normal(size=40)[j] + rng.logistic(size=3000)
    stars = 1 + (odds[:, None] > [-5.0, -1.5, 0.0, 1.5, 5.0]).sum(axis=1)
    score = OnlineMatrixClassifier(thresholds=[2, 3, 4, 5, 6]).score_stream((i, j), stars)
    for k in (0, 4):
        alone = OnlineMatrixClassifier(thresholds=k + 2).score_stream((i, j), stars)
        p = np.where(stars >= k + 2, score.probabilities[:, k], 1 - score.probabilities[:, k])
        assert -np.log(p).mean() < 0.97 * alone.loss


@pytest.mark.parametrize("name", ["nothing", "features", "one graph"])
def test_a_threshold_keeps_few_experts_beside_the_share(name):
    """What costs, a refit of many experts and links of shared ids, is paid once a rating and not once a threshold."""
    i, j, _ = stream()
    model = OnlineMatrixClassifier(*SIDES[name], thresholds="auto").fit((i, j), 1 + (i + j) % 4)
    share, *single = model._engine.pools
    assert len({pool.hedged for pool in single}) == 1
    assert {"lower threshold", "share of thresholds"} < set(model.expert_names_)
    assert len(model.expert_names_) == single[0].hedged == model.expert_weights_.shape[1]
    of_one = OnlineMatrixClassifier(*SIDES[name]).fit((i, j), (i + j) % 2)
    assert share.hedged > len(of_one.expert_names_) > single[0].hedged
    np.testing.assert_allclose(model.expert_weights_.sum(axis=1), 1)


def test_thresholds_may_be_cut_and_saved_anywhere(tmp_path):
    i, j, _ = stream()
    stars = 1 + (i + j) % 4
    whole = OnlineMatrixClassifier(thresholds="auto").partial_fit((i, j), stars)
    parts = OnlineMatrixClassifier(thresholds="auto").partial_fit((i[:99], j[:99]), stars[:99])
    save_model(parts, tmp_path / "model.lacunar")
    parts = load_model(tmp_path / "model.lacunar")
    for each in zip(i[99:].tolist(), j[99:].tolist(), stars[99:].tolist(), strict=True):
        parts.learn_one(*each)
    np.testing.assert_array_equal(whole.decision_function((i, j)), parts.decision_function((i, j)))


def test_the_order_of_arguments_is_that_of_fit():
    i, j, y = stream()
    one = OnlineMatrixClassifier().fit((i, j), y)
    other = OnlineMatrixClassifier().partial_fit((i, j), y)
    scored = OnlineMatrixClassifier()
    assert scored.score_stream(np.column_stack([i, j]), y).values.shape == (len(y),)
    for each in (other, scored):
        np.testing.assert_array_equal(one.decision_function((i, j)), each.decision_function((i, j)))


@pytest.mark.parametrize("doubt", [0.0, 0.3])
@pytest.mark.parametrize("rank", [1, 2, 3, 5, 10])
def test_refits_of_biases_and_factors_alone_are_those_beside_features(rank, doubt):
    """Loops with a known number of factors sum what the general ones do, to which features of 0 add nothing."""
    i, j, y = stream()
    options, nothing = {"rank": rank, "doubt": doubt, "sweeps": 1}, np.zeros((12, 1))
    _, alone = run(core([options], refit_share=0.0), i, j, y)
    _, beside = run(core([options | {"features": True}], features=(nothing, nothing), refit_share=0.0), i, j, y)
    np.testing.assert_allclose(alone[:, 3], beside[:, 3], rtol=1e-9)


def test_ratings_of_many_factors_are_learned():
    """Eight factors of ratings: the pool of their share has enough of them."""
    rng = np.random.default_rng(0)
    rows, cols = 0.5 * rng.normal(size=(120, 8)), rng.normal(size=(80, 8))
    i, j = rng.integers(0, 120, 9000), rng.integers(0, 80, 9000)
    stars = np.clip(np.rint(3 + (rows[i] * cols[j]).sum(axis=1) + 0.3 * rng.normal(size=9000)), 1, 5)
    reached = OnlineMatrixClassifier(thresholds="auto").score_stream(i, j, stars, classes=range(1, 6)).probabilities
    assert np.sqrt(np.square(1 + reached.sum(axis=1) - stars)[-2000:].mean()) < 0.55


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
def test_spread_refits_are_those_of_the_formulas(share):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 30, 1000), rng.integers(0, 20, 1000)
    y = np.where(rng.normal(size=30)[i] + rng.normal(size=20)[j] + rng.normal(size=1000) > 0, 1, -1)
    _, each = run(core([{}], 30, 20, refit_share=share), i, j, y)
    np.testing.assert_allclose(each[:, 3], twin.refitted_biases(i, j, y, share), rtol=1e-9)


def of_several_trials(trials=4, n=400):
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 12, (2, n))
    p = 1 / (1 + np.exp(-rng.normal(size=12)[i] - rng.normal(size=12)[j]))
    return i, j, 2 * rng.binomial(trials, p) - trials


def test_labels_of_several_trials_weigh_as_many():
    i, j, y = of_several_trials()
    pool = core([{}], trials=4, refit_share=0.02)
    out, each = run(pool, i, j, y)
    np.testing.assert_allclose(each[:, 3], twin.refitted_biases(i, j, y, 0.02, trials=4), rtol=1e-9)
    state, reached = pool.state(True), (4 + y) // 2
    np.testing.assert_array_equal(state["row_counts"].reshape(12, 2)[:, 1], np.bincount(i, reached, 12))
    np.testing.assert_array_equal(state["seen_labels"], y)
    gain = y / 2 * np.log(out / (1 - out)) + 2 * np.log(out * (1 - out))
    best = (y[:, None] / 2 * np.log(each / (1 - each)) + 2 * np.log(each * (1 - each))).sum(axis=0).max()
    assert best - gain.sum() < np.log(each.shape[1]) + np.log(len(y) + 1)  # the hedge's bound


def test_a_cell_counts_every_trial():
    """The expert of the same pair, after one label of four trials on a pair, has seen four."""
    pool = core([{"refit": False}], trials=4)
    cell = np.zeros(30, int)
    _, each = run(pool, cell, cell, np.full(30, 2))
    assert abs(each[-1, 4] - 0.75) < 0.01


def test_no_trial_waits_for_a_whole_refit():
    """A trial refits few of the rows at once, and the trials that refit are few."""
    rng = np.random.default_rng(0)
    n, rows = 8000, 300
    i, j, y = rng.integers(0, rows, n), rng.integers(0, rows, n), rng.choice([-1, 1], n)
    pool = core([{}], rows, rows, refit_share=0.02)
    run(pool, i[:5000], j[:5000], y[:5000])
    before, changed = pool.state(False)["model0_rows"].reshape(rows, 3), []
    for t in range(5000, n):
        run(pool, i[t : t + 1], j[t : t + 1], y[t : t + 1])
        after = pool.state(False)["model0_rows"].reshape(rows, 3)
        changed.append((after != before).any(axis=1).sum())
        before = after
    changed = np.array(changed)
    assert changed.max() < rows / 2
    assert changed.sum() > 8 * rows
    assert 0 < (changed > 1).mean() < 0.1


def in_a_refit(model):
    """Whether a refit is under way."""
    return model.state()["pools"][0]["refit_place"][0] >= 0


@pytest.mark.parametrize("name", SIDES)
def test_copies_in_the_midst_of_a_refit_go_on_to_the_same_bits(name, spread, tmp_path):
    i, j, y = stream()
    model = OnlineMatrixClassifier(*SIDES[name]).partial_fit(i[:244], j[:244], y[:244])
    assert in_a_refit(model)
    save_model(model, tmp_path / "model.lacunar")
    copies = [load_model(tmp_path / "model.lacunar"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = model.score_stream(i[244:], j[244:], y[244:])
    for other in copies:
        scores = []
        for pair in zip(i[244:].tolist(), j[244:].tolist(), y[244:].tolist(), strict=True):
            other.predict_proba((j[:5], i[:5]))
            scores.extend(other.score_stream(*([part] for part in pair)).values)
        np.testing.assert_array_equal(scores, expected.values)


@pytest.mark.parametrize("learn", ["partial_fit", "learn_one"])
def test_an_interrupted_batch_goes_on_from_the_midst_of_a_refit(monkeypatch, learn):
    i, j, y = stream()
    model, other = (OnlineMatrixClassifier(Features(TABLE)).partial_fit(i[:240], j[:240], y[:240]) for _ in range(2))
    kind = pool_module.PoolBatch if learn == "partial_fit" else pool_module.OnePoolTrial
    whole = kind._learn

    def interrupted(self, *args):
        whole(self, *args)
        if model._engine.pools[0].n_seen == 244:
            monkeypatch.undo()
            raise KeyboardInterrupt

    def learn_all():
        if learn == "partial_fit":
            model.partial_fit(i[240:], j[240:], y[240:])
        for pair in zip(i[240:].tolist(), j[240:].tolist(), y[240:].tolist(), strict=True):
            model.learn_one(*pair)

    monkeypatch.setattr(kind, "_learn", interrupted)
    monkeypatch.setattr(pool_module.PoolModel, "trials_at_once", 4)
    with pytest.raises(KeyboardInterrupt):
        learn_all()
    assert model.n_seen_ == 244
    assert in_a_refit(model)
    other.partial_fit(i[240:244], j[240:244], y[240:244])
    expected = other.score_stream(i[244:], j[244:], y[244:]).values
    np.testing.assert_array_equal(model.score_stream(i[244:], j[244:], y[244:]).values, expected)


def test_labels_that_all_flip_are_followed():
    """A fast expert learns anew after each change; the others learn that they know nothing."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    i, j = rng.integers(0, 30, 6000), rng.integers(0, 20, 6000)
    y = np.where((u[i] * v[j]).sum(axis=1) > 0, 1, -1) * np.where(np.arange(6000) // 1000 % 2, -1, 1)
    assert OnlineMatrixClassifier().score_stream(i, j, y).error < 0.25
