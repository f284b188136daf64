"""MBEG: its estimate and its draws by enumeration, and the projection."""

import itertools
import warnings

import numpy as np
import pytest
from reference import mbeg

from lacunar.active import MBEG
from lacunar.active.acquisition import add_rows, empty_tables
from lacunar.active.mbeg import project_logs
from lacunar.papers.subspace import PrintedMBEG
from lacunar.persistence import load_model, save_model

ATOM = np.array([0.6, 0.8, 0.0, 0.0, 0.0])


def signed(seed, atom=ATOM):
    rng = np.random.default_rng(seed)
    return lambda indices: (rng.choice([-1.0, 1.0]) * atom)[indices]


def test_the_estimate_is_unbiased_by_enumeration():
    d, k = 4, 2
    rng = np.random.default_rng(0)
    model = MBEG(d, k, eta=0.05, alpha=0.3, refresh=4, random_state=0)
    model.run(signed(2, rng.normal(size=d)), 40)
    p = mbeg.law(model.W_, k, 0.3)
    assert p.sum() == pytest.approx(1)
    assert np.ptp(p) > 0.01
    x, mean = rng.normal(size=d), np.zeros((d, d))
    for s in range(d):
        for q in range(d):
            model.potential_ = np.zeros((d, d))
            model._add(model._tables(), np.array([[s, q]]), np.array([[p[s, q]]]), np.array([[x[s], x[q]]]))
            mean += p[s, q] * model.potential_
    np.testing.assert_allclose(mean, np.outer(x, x), atol=1e-12)


def test_pairs_are_drawn_by_their_law():
    model = MBEG(4, 2, eta=0.2, refresh=8, random_state=0).run(signed(5, ATOM[:4]), 64)
    p, n = mbeg.law(model.W_, 2, 0.3), 200_000
    drawn, frozen = model._drawn(n)
    counts = np.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=16).reshape(4, 4)
    np.testing.assert_allclose(frozen[:, 0], p[drawn[:, 0], drawn[:, 1]])
    assert (np.abs(counts - n * p) < 5 * np.sqrt(n * p)).all()


@pytest.mark.parametrize("costs", [None, [1.0, 4.0, 9.0, 2.0]])
def test_all_pairs_are_unbiased_by_enumeration(costs):
    d, r, share = 4, 4, 0.3
    model = MBEG(d, 1, r, pairs="all", alpha=share, eta=0.05, refresh=4, costs=costs, random_state=0)
    model.run(signed(2, np.array([0.5, -0.3, 0.8, 0.1])), 40)
    x, mean, total = np.array([1.0, -2.0, 0.5, 3.0]), np.zeros((d, d)), 0.0
    strong, weak = mbeg.tilted(model.W_, np.ones(d) if costs is None else np.array(costs))
    laws = [(1 - share) * strong + share * weak] * 2 + [weak] * 2
    for row in itertools.product(range(d), repeat=r):
        chance = np.prod([law[j] for law, j in zip(laws, row, strict=True)])
        expected = np.array([
            sum(a[s] * b[q] for i, a in enumerate(laws) for j, b in enumerate(laws) if i != j)
            for s, q in itertools.combinations(row, 2)
        ])  # fmt: skip
        model.potential_ = np.zeros((d, d))
        drawn = np.array([row])
        model._add(model._tables(), drawn, expected[None], x[drawn])
        mean += chance * model.potential_
        total += chance
    assert total == pytest.approx(1)
    np.testing.assert_allclose(mean, np.outer(x, x), atol=1e-12)


@pytest.mark.parametrize("pairs", ["half", "all"])
def test_draws_follow_costs_and_say_how_often_pairs_are_expected(pairs):
    costs, n = np.array([1.0, 1.0, 16.0, 16.0]), 100_000
    model = MBEG(4, 2, 4, pairs=pairs, eta=0.2, refresh=8, costs=costs, random_state=0).run(signed(5, ATOM[:4]), 64)
    drawn, frozen = model._drawn(n)
    strong, weak = mbeg.tilted(model.W_, costs)
    share = (0.7 * strong + 0.3 * weak + weak) / 2
    counts = np.bincount(drawn.ravel(), minlength=4)
    assert (np.abs(counts - 4 * n * share) < 5 * np.sqrt(4 * n * share)).all()
    assert counts[2:].sum() < 0.35 * counts.sum()
    # sums of 1 / expected over the pairs of a row count every ordered pair of attributes once, on average
    per_row = np.sum(2 / frozen, axis=1) if pairs == "all" else np.mean(1 / frozen, axis=1)
    assert abs(per_row.mean() - 16) < 5 * per_row.std() / np.sqrt(n)


def test_all_pairs_need_fewer_rows():
    d, strength = 16, np.sqrt([0.6, 0.4])
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(d, 2)))[0].T
    lost = {"half": [], "all": []}
    for pairs, found in lost.items():
        for seed in range(5):
            rng = np.random.default_rng(seed)
            model = MBEG(d, 2, 8, pairs=pairs, random_state=seed)
            model.run(lambda indices, rng=rng: ((rng.normal(size=2) * strength) @ basis)[indices], 1000)
            components = model.result().components_
            found.append(1 - np.sum((components @ basis.T) ** 2 * strength**2))
    assert np.mean(lost["all"]) < 0.5 * np.mean(lost["half"])


@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_projection(k):
    rng = np.random.default_rng(k)
    for size in (0.1, 1, 10):
        logs = size * rng.normal(size=7)
        made = np.exp(project_logs(logs, k))
        np.testing.assert_allclose(made.sum(), k)
        if k < 7:
            np.testing.assert_allclose(made, mbeg.project(np.exp(logs), k), atol=1e-9)
    far = project_logs(np.array([1e4, 5.0, -1e4, 5.0, 2e4, 0, 0]), k)
    assert np.isfinite(far).all()
    assert np.exp(far).sum() == pytest.approx(k)


def test_it_finds_the_direction():
    model = MBEG(5, 1, 4, random_state=0).run(signed(1), 3000)
    found = model.result()
    captured = float(found.components_[0] @ ATOM) ** 2
    assert captured > 0.99
    np.testing.assert_array_equal(found.components_, model.result().components_)
    assert np.trace(found.weights_) == pytest.approx(1)


def test_resumed_from_a_file(tmp_path):
    model = MBEG(5, 2, refresh=8, random_state=0).run(signed(1), 50)
    waiting = model.ask(3)
    save_model(model, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    for one in (model, back):
        one.tell(waiting[1].id, ATOM[waiting[1].indices])
        one.run(signed(7), 40)
    np.testing.assert_array_equal(model.W_, back.W_)
    np.testing.assert_array_equal(model.ask()[0].indices, back.ask()[0].indices)
    np.testing.assert_array_equal(model.result().components_, back.result().components_)


def test_refused_pairs_are_left_out():
    model = MBEG(4, 1, 4, alpha=1.0, random_state=0)
    for _ in range(200):
        request = model.ask()[0]
        model.tell(request, np.where(request.indices == 3, np.nan, ATOM[:4][request.indices]))
    assert not model.potential_[3].any()
    assert model.n_told_ == 200
    assert model.result().components_[0][:2] == pytest.approx([0.6, 0.8], abs=0.1)


def test_what_is_impossible_is_refused():
    with pytest.raises(ValueError, match="even"):
        MBEG(5, 1, 3).ask()
    with pytest.raises(ValueError, match="no two are ever seen together"):
        MBEG(5, 1, 1).ask()
    with pytest.raises(ValueError, match="none told"):
        MBEG(5, 1, 2).result()


def test_tables_add_each_row_once():
    tables = empty_tables(3)
    add_rows(tables, np.array([[2, 0, -1]]), np.array([[3.0, np.nan, 7.0]]))
    assert tables["S"][2, 2] == 9
    assert tables["N"].sum() == 1
    assert tables["A"].sum() == 3


def test_a_horizon_too_short_for_theorem_7_warns():
    d, k, r = 5, 2, 4
    least = 2 * d**4 * r / (d + r) * np.log(d)
    with warnings.catch_warnings(action="error"):
        PrintedMBEG(d, k, r=r, m=int(np.ceil(least)), random_state=0).ask()
    with pytest.warns(UserWarning, match="at most 1/2"):
        PrintedMBEG(d, k, r=r, m=int(least) - 1, random_state=0).ask()
