"""Active POPCA: unbiased by enumeration, draws by their law, ask and tell, refusals, costs, resumption, fewer rows."""

import itertools
import tracemalloc

import numpy as np
import pytest

from lacunar.active import MBEG, ActivePOPCA
from lacunar.active.acquisition import add_rows, covariance, empty_tables, means
from lacunar.persistence import load_model, save_model


def pairs_oracle(d, seed, noise=0.0):
    """Rows +-(e_0 + e_1) / sqrt 2 or +-(e_2 + e_3) / sqrt 2: a coherent subspace of dimension 2."""
    rng = np.random.default_rng(seed)

    def oracle(indices):
        x = noise * rng.normal(size=d)
        j = 2 * rng.integers(2)
        x[j : j + 2] += rng.choice([-1, 1]) * 0.5**0.5
        return x[indices]

    return oracle


def missed(components, d):
    truth = np.zeros((2, d))
    truth[0, :2] = truth[1, 2:4] = 0.5**0.5
    return 1 - np.sum((components @ truth.T) ** 2) / 2


@pytest.mark.parametrize("strategy", ["uniform", "uniform-with-replacement"])
@pytest.mark.parametrize("r", [2, 3])
def test_design_weights_are_unbiased_by_enumeration(strategy, r):
    d, rng = 4, np.random.default_rng(0)
    x = rng.normal(size=d)
    replaced = strategy.endswith("replacement")
    draws = list(itertools.product(range(d), repeat=r) if replaced else itertools.permutations(range(d), r))
    mean = np.zeros((d, d))
    for drawn in draws:
        model = ActivePOPCA(d, 1, r, strategy=strategy, normalisers="design")
        model._start()
        model._take(np.array([drawn]), np.empty((1, 0)), x[np.array([drawn])])
        mean += model.result().covariance_ / len(draws)
    np.testing.assert_allclose(mean, np.outer(x, x), atol=1e-12)


def test_covariance_is_unbiased_given_the_mask():
    d, n, rng = 3, 7, np.random.default_rng(0)
    seen = rng.random((n, d)) < 0.7
    mixing = rng.normal(size=(d, d))
    indices = np.where(seen, np.arange(d), -1)

    def estimate(X):
        tables = empty_tables(d)
        add_rows(tables, indices, X)
        return covariance(tables)

    # Quadratic in the rows, so the expectation is the sum over unit noise in each row and coordinate alone.
    mean = np.zeros((d, d))
    for a, j in itertools.product(range(n), range(d)):
        X = np.zeros((n, d))
        X[a] = mixing[:, j]
        mean += estimate(X)
    np.testing.assert_allclose(mean, mixing @ mixing.T, atol=1e-12)
    X = rng.normal(size=(n, d))
    np.testing.assert_allclose(estimate(X + 100), estimate(X), atol=1e-9)


@pytest.mark.parametrize("r", [2, 3, 4])
def test_adaptive_draws_are_distinct_and_follow_their_law(r):
    d, n = 5, 100_000
    model = ActivePOPCA(d, 1, r, random_state=0)
    model._start()
    model.laws_ = np.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])
    drawn = model._drawn(n)[0]
    assert all(len(set(row)) == r for row in drawn[:2000].tolist())
    first, second = model.laws_
    law = np.outer(first, second)
    np.fill_diagonal(law, 0)
    law *= (first / law.sum(axis=1))[:, None]
    counts = np.bincount(drawn[:, 0] * d + drawn[:, 1], minlength=d * d).reshape(d, d)
    assert (np.abs(counts - n * law) <= 5 * np.sqrt(n * law)).all()


@pytest.mark.parametrize("strategy", ["adaptive", "uniform", "uniform-with-replacement"])
def test_every_strategy_finds_the_subspace(strategy):
    model = ActivePOPCA(8, 2, 3, strategy=strategy, random_state=0).run(pairs_oracle(8, 1, 0.05), 4000)
    found = model.result()
    assert missed(found.components_, 8) < 0.02
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(2), atol=1e-12)
    assert found.explained_variance_ratio_.sum() == pytest.approx(1 - 6 * 0.0025 / (1 + 8 * 0.0025), abs=0.03)
    row = np.zeros((1, 8))
    row[0, :2] = 0.5**0.5
    row[0, 1] = np.nan
    assert found.inverse_transform(found.transform(row))[0, 1] == pytest.approx(0.5**0.5, abs=0.1)
    assert np.linalg.eigvalsh(found.get_covariance()).min() > -1e-12


def test_adaptive_needs_a_fifth_of_the_rows():
    d = 64
    few = [ActivePOPCA(d, 2, random_state=s).run(pairs_oracle(d, s), 4000).result() for s in range(2)]
    many = [
        ActivePOPCA(d, 2, strategy="uniform", random_state=s).run(pairs_oracle(d, s), 20000).result() for s in range(2)
    ]
    adaptive, uniform = (np.mean([missed(one.components_, d) for one in results]) for results in (few, many))
    assert adaptive < uniform


def test_any_order_subsets_and_refusals():
    model = ActivePOPCA(6, 2, 3, strategy="uniform", random_state=0)
    requests = model.ask(5)
    x = np.arange(1.0, 7)
    model.tell(requests[4], x[requests[4].indices])
    refused = {int(requests[1].indices[0]): float(x[requests[1].indices[0]])}
    model.tell(requests[1], refused)
    model.tell(requests[0].id, [np.nan] * 3)
    assert model.n_told_ == 3
    assert sorted(model.pending_) == [2, 3]
    assert model.spent_ == 4
    assert np.trace(model.state_["N"]) == 4
    before = {name: table.copy() for name, table in model.state_.items()}
    with pytest.raises(ValueError, match="told or cancelled already"):
        model.tell(requests[4], x[requests[4].indices])
    with pytest.raises(ValueError, match="never asked for"):
        model.tell(99, [1, 2, 3])
    with pytest.raises(ValueError, match="3 numbers"):
        model.tell(requests[2], [1.0])
    with pytest.raises(ValueError, match="got inf for attribute"):
        model.tell(requests[2], [1.0, np.inf, 2.0])
    with pytest.raises(ValueError, match=r"too\. Leave them out"):
        model.tell(requests[2], dict.fromkeys(range(6), 1.0))
    stranger = ActivePOPCA(6, 2, 2, random_state=5).ask(4)[2]
    with pytest.raises(ValueError, match="sampler that asked"):
        model.tell(stranger, [1.0, 2.0])
    for name, table in before.items():
        np.testing.assert_array_equal(model.state_[name], table)
    assert sorted(model.pending_) == [2, 3]
    assert model.n_told_ == 3


def test_order_of_telling_makes_no_difference():
    x = np.random.default_rng(0).normal(size=(20, 5))
    models = [ActivePOPCA(5, 2, 3, strategy="uniform", random_state=0) for _ in range(2)]
    for model, order in zip(models, (range(20), reversed(range(20))), strict=True):
        requests = model.ask(20)
        for i in order:
            model.tell(requests[i], x[i, requests[i].indices])
    np.testing.assert_allclose(models[0].result().covariance_, models[1].result().covariance_, atol=1e-12)
    np.testing.assert_allclose(models[0].result().mean_, means(models[0].state_))


def test_costs_are_paid_and_avoided():
    costs = np.where(np.arange(8) % 2, 9.0, 1.0)
    model = ActivePOPCA(8, 2, costs=costs, random_state=0)
    model.run(pairs_oracle(8, 0, 0.1), 2000)
    seen = np.diag(model.state_["N"])
    assert model.spent_ == pytest.approx(seen @ costs)
    plain = np.diag(ActivePOPCA(8, 2, random_state=0).run(pairs_oracle(8, 0, 0.1), 2000).state_["N"])
    assert seen[1::2].sum() < 0.8 * plain[1::2].sum()
    capped = ActivePOPCA(8, 2, costs=costs, random_state=0).run(pairs_oracle(8, 0), 2000, max_cost=100)
    assert 100 <= capped.spent_ < 118
    with pytest.raises(ValueError, match="8 positive numbers"):
        ActivePOPCA(8, 2, costs=[1.0, 2.0]).ask()


def test_resumed_from_a_file(tmp_path):
    model = ActivePOPCA(6, 2, 3, random_state=0).run(pairs_oracle(6, 1, 0.1), 100)
    waiting = model.ask(4)
    save_model(model, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    for one in (model, back):
        one.tell(waiting[2].id, np.ones(3))
        one.run(pairs_oracle(6, 2, 0.1), 77)
    np.testing.assert_array_equal(model.result().components_, back.result().components_)
    for mine, theirs in zip(model.ask(50), back.ask(50), strict=True):
        assert mine.id == theirs.id
        np.testing.assert_array_equal(mine.indices, theirs.indices)


def test_nothing_to_learn_from():
    dark = ActivePOPCA(5, 2, random_state=0).run(lambda i: np.full(len(i), np.nan), 60)
    assert np.isfinite(dark.result().components_).all()
    assert dark.spent_ == 0
    flat = ActivePOPCA(5, 2, random_state=0).run(lambda i: np.ones(len(i)), 60).result()
    np.testing.assert_allclose(flat.explained_variance_, 0, atol=1e-12)
    np.testing.assert_allclose(flat.mean_, 1)


def test_what_is_impossible_is_refused():
    with pytest.raises(ValueError, match="no two are ever seen together"):
        ActivePOPCA(5, 1, 1).ask()
    with pytest.raises(ValueError, match="at most n_features=5"):
        ActivePOPCA(5, 6).ask()
    with pytest.raises(ValueError, match="normalisers must be 'pairwise'"):
        ActivePOPCA(5, 1, normalisers="design").ask()
    with pytest.raises(ValueError, match="none told"):
        ActivePOPCA(5, 1).result()
    with pytest.raises(ValueError, match="n must be at least 1"):
        ActivePOPCA(5, 1).ask(0)
    strict = ActivePOPCA(5, 1, strategy="uniform", normalisers="design", random_state=0)
    request = strict.ask()[0]
    with pytest.raises(ValueError, match="no refusal"):
        strict.tell(request, [np.nan, 1.0])
    strict.tell(request, [2.0, 1.0])
    assert strict.n_told_ == 1


def test_what_was_paid_for_survives_a_failing_oracle():
    answered = []

    def oracle(indices):
        if len(answered) == 30:
            raise OSError("the instrument is off")
        answered.append(indices)
        return np.ones(len(indices))

    model = ActivePOPCA(64, 2, random_state=0)
    with pytest.raises(OSError, match="instrument"):
        model.run(oracle, 100)
    assert model.n_told_ == 30
    assert np.trace(model.state_["N"]) == model.spent_ == 60
    with pytest.raises(ValueError, match="got 1e\\+200 for attribute"):
        model.run(lambda indices: np.full(len(indices), 1e200), 10)
    assert model.n_told_ == 30
    with pytest.raises(
        ValueError, match=r"values of request .* must hold numbers; got 'a' in row 0 .* Answer with numbers"
    ):
        model.run(lambda indices: ["a"] * len(indices), 10)
    for m in (-1, 1.5, "2"):
        with pytest.raises(ValueError, match=f"m must be a whole number of at least 0; got {m!r}"):
            model.run(oracle, m)
    for cost in (-1, np.nan, None):
        with pytest.raises(ValueError, match="max_cost must be a number of at least 0; got"):
            model.run(oracle, 1, max_cost=cost)
    assert model.n_told_ == 30


def test_requests_may_be_given_up(tmp_path):
    model = ActivePOPCA(5, 1, 2, random_state=0)
    first, second, third = model.ask(3)
    model.cancel(first)
    model.cancel(second.id)
    assert list(model.pending_) == [third.id]
    assert (model.n_asked_, getattr(model, "n_told_", 0), model.spent_) == (3, 0, 0.0)
    for call in (lambda: model.tell(first, np.zeros(2)), lambda: model.cancel(first), lambda: model.cancel(99)):
        with pytest.raises(ValueError, match="request must be one that waits"):
            call()
    save_model(model, tmp_path / "m.lacunar")
    assert list(load_model(tmp_path / "m.lacunar").pending_) == [third.id]


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("rows", [0, 1, 56, 300])
@pytest.mark.parametrize("make", [lambda: ActivePOPCA(6, 2, 3, random_state=0), lambda: MBEG(6, 2, random_state=0)])
def test_an_oracle_that_fails_keeps_what_was_answered(make, rows, kind):
    steady, answered = pairs_oracle(6, 1, 0.1), []

    def failing(indices):
        if len(answered) == rows:
            raise kind("the sensor is off")
        answered.append((indices, steady(indices)))
        return answered[-1][1]

    model = make()
    with pytest.raises(kind, match="the sensor is off"):
        model.run(failing, 1000)
    assert model.n_told_ == rows
    assert model.spent_ == sum(len(indices) for indices, _ in answered)
    counts, squares = np.zeros((6, 6)), np.zeros(6)
    for indices, values in answered:
        counts[np.ix_(indices, indices)] += 1
        squares[indices] += values**2
    np.testing.assert_array_equal(model.state_["N"], counts)
    np.testing.assert_allclose(np.diag(model.state_["S"]), squares, rtol=1e-12)
    assert model.run(steady, 40).n_told_ == rows + 40


@pytest.mark.parametrize("make", [lambda d: ActivePOPCA(d, random_state=0), lambda d: MBEG(d, random_state=0)])
def test_telling_a_row_copies_no_table(make):
    """Where nothing is renewed, a row costs no more memory than its own attributes."""
    d = 300
    sampler = make(d)
    requests = sampler.ask(5)
    sampler.tell(requests[0], np.ones(len(requests[0].indices)))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for request in requests[1:]:
            sampler.tell(request, np.ones(len(request.indices)))
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 8 * d * d / 4


def test_whole_rows_are_bought_whole_and_miss_least_at_one_price():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 2)))[0].T
    missed = {2: [], 8: [], 24: []}
    for r, errors in missed.items():
        for seed in range(5):
            rng = np.random.default_rng(100 + seed)
            row = lambda seen, rng=rng: (rng.normal(size=2) @ basis + 0.05 * rng.normal(size=24))[seen]  # noqa: E731
            sampler = ActivePOPCA(24, 2, r, random_state=seed).run(row, 960 // r)
            errors.append(1 - np.sum((sampler.result().components_ @ basis.T) ** 2) / 2)
    assert sampler.ask()[0].indices.tolist() == list(range(24))
    assert sampler.spent_ == 960
    assert np.mean(missed[24]) < 0.5 * min(np.mean(missed[2]), np.mean(missed[8]))
