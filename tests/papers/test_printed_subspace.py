"""POPCA and MBEG of `lacunar.papers.subspace` against the algorithms line by line; Algorithm 3; files of them."""

import warnings

import numpy as np
import pytest
from reference import mbeg
from reference.popca import algorithm1

from lacunar.active.mbeg import project_logs
from lacunar.papers.subspace import PrintedMBEG, PrintedPOPCA
from lacunar.papers.subspace.mbeg import decompose
from lacunar.persistence import load_model, save_model

ATOM = np.array([0.6, 0.8, 0.0, 0.0, 0.0])


def signed(seed, atom=ATOM):
    rng = np.random.default_rng(seed)
    return lambda indices: (rng.choice([-1.0, 1.0]) * atom)[indices]


@pytest.mark.parametrize("r", [4.0, None])
def test_popca_is_algorithm_1(r, tmp_path):
    rng = np.random.default_rng(0)
    complete = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(300, 8)) + 3.0
    X = np.where(rng.random(complete.shape) < 0.5, complete, np.nan)
    C, components = algorithm1(X, np.mean(~np.isnan(X)) if r is None else r / 8, 2)
    model = PrintedPOPCA(2, r).fit(X)
    np.testing.assert_allclose(model.second_moment_, C, rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * components, axis=1)), 1, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(C)[::-1][:2], rtol=1e-9)
    np.testing.assert_allclose(model.transform(complete), complete @ model.components_.T, atol=1e-9)
    save_model(model, tmp_path / "m.lacunar")
    np.testing.assert_array_equal(load_model(tmp_path / "m.lacunar").transform(X), model.transform(X))
    for bad in (PrintedPOPCA(9), PrintedPOPCA(2, 8.5)):
        with pytest.raises(ValueError, match="k and r must be at most the number of columns, 8"):
            bad.fit(X)


@pytest.mark.parametrize("r", [4.0, None])
def test_popca_goes_on_with_further_rows(r, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(90, 8))
    X[rng.random(X.shape) < 0.5] = np.nan
    whole, parts = PrintedPOPCA(2, r).fit(X), PrintedPOPCA(2, r)
    for start, stop in ((0, 1), (1, 2), (2, 40), (40, 90)):
        parts.partial_fit(X[start:stop])
        C, _ = algorithm1(X[:stop], np.mean(~np.isnan(X[:stop])) if r is None else r / 8, 2)
        np.testing.assert_allclose(parts.second_moment_, C, rtol=1e-10, atol=1e-13)
        if start == 1:
            save_model(parts, tmp_path / "m.lacunar")
            parts = load_model(tmp_path / "m.lacunar")
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-10)
    assert parts.n_samples_seen_ == 90
    batches = PrintedPOPCA(2, r).fit_batches([X[:40], (X[40:], None)])
    np.testing.assert_allclose(batches.second_moment_, whole.second_moment_, rtol=1e-12, atol=1e-14)
    twin = PrintedPOPCA(2, r).fit(X[:40]).partial_fit(X[40:])
    np.testing.assert_array_equal(twin.second_moment_, batches.second_moment_)
    with pytest.raises(ValueError, match="8 features"):
        twin.partial_fit(X[:, :5])
    np.testing.assert_array_equal(twin.fit(X).second_moment_, whole.second_moment_)


@pytest.mark.parametrize("r", [2, 4, 6])
def test_mbeg_is_algorithm_2(r):
    d, k, m = 6, 2, 25
    model = PrintedMBEG(d, k, r=r, m=m, alpha=0.25, random_state=0)
    rng = np.random.default_rng(1)
    eta = np.sqrt(r * np.log(d) / (2 * m * (d + r)))
    W, total = np.eye(d) * k / d, np.zeros((d, d))
    for _ in range(m):
        request = model.ask()[0]
        pairs = model.pending_[request.id][0].reshape(-1, 2)
        p = mbeg.law(W, k, 0.25)
        np.testing.assert_allclose(model.pending_[request.id][1], p[tuple(pairs.T)], rtol=1e-9)
        x = rng.normal(size=d)
        model.tell(request, x[request.indices])
        total += W
        W = mbeg.step(W, mbeg.estimate(pairs, x, p), eta, k)
        np.testing.assert_allclose(model.W_, W, atol=1e-9)
    np.testing.assert_allclose(model.result().weights_, total / m, atol=1e-9)


def test_inputs_that_are_left_out_are_those_of_the_theorem():
    """alpha = eta d^2, and the projection drawn by Algorithm 3."""
    d, k, r, m = 3, 1, 2, 2000
    model = PrintedMBEG(d, k, r=r, m=m, random_state=0)
    other = PrintedMBEG(d, k, r=r, m=1, eta=(eta := np.sqrt(r * np.log(d) / (2 * m * (d + r)))), random_state=0)
    W, total, rng = np.eye(d) * k / d, np.zeros((d, d)), np.random.default_rng(4)
    for _ in range(50):
        request, same = model.ask()[0], other.ask()[0]
        pairs = model.pending_[request.id][0].reshape(-1, 2)
        p = mbeg.law(W, k, eta * d**2)
        np.testing.assert_allclose(model.pending_[request.id][1], p[tuple(pairs.T)], rtol=1e-9)
        x = rng.normal(size=d)
        model.tell(request, x[request.indices])
        other.tell(same, x[same.indices])
        total += W
        W = mbeg.step(W, mbeg.estimate(pairs, x, p), eta, k)
    np.testing.assert_allclose(model.result().weights_, total / 50, atol=1e-9)
    np.testing.assert_array_equal(other.result().components_, model.result().components_)
    basis = np.linalg.eigh(total)[1]
    assert np.isclose(np.abs(model.result().components_ @ basis), 1, atol=1e-6).any()


def test_decomposition_is_algorithm_3():
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = int(rng.integers(2, 12))
        k = int(rng.integers(1, d + 1))
        lam = np.exp(project_logs(3 * rng.normal(size=d), k))
        terms, mixed = decompose(lam, k), np.zeros(d)
        assert len(terms) <= d
        for beta, members in terms:
            assert len(set(members.tolist())) == k
            mixed[members] += beta
        np.testing.assert_allclose(mixed, lam, atol=1e-9)
        assert [round(b, 9) for b, _ in terms] == [round(b, 9) for b, _ in mbeg.decomposition(lam, k) if b > 1e-9]


def test_mbeg_finds_the_direction():
    result = PrintedMBEG(5, 1, r=4, m=3000, eta=0.05, alpha=0.3, random_state=0).run(signed(1), 3000).result()
    assert float(result.components_[0] @ ATOM) ** 2 > 0.99
    assert np.trace(result.weights_) == pytest.approx(1)


def test_mbeg_resumed_from_a_file(tmp_path):
    model = PrintedMBEG(5, 2, m=600, random_state=0).run(signed(1), 50)
    waiting = model.ask(3)
    save_model(model, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    for one in (model, back):
        one.tell(waiting[1].id, ATOM[waiting[1].indices])
        one.run(signed(7), 40)
    np.testing.assert_array_equal(model.W_, back.W_)
    np.testing.assert_array_equal(model.ask()[0].indices, back.ask()[0].indices)
    np.testing.assert_array_equal(model.result().components_, back.result().components_)


def test_a_failed_answer_leaves_mbeg_as_it_was(monkeypatch):
    model = PrintedMBEG(5, 2, r=4, m=900, random_state=0).run(signed(1), 20)
    request, before = model.ask()[0], model.potential_.copy()
    monkeypatch.setattr("lacunar.papers.subspace.mbeg.project_logs", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.tell(request, ATOM[request.indices])
    np.testing.assert_array_equal(model.potential_, before)
    assert model.n_told_ == 20


def test_what_mbeg_cannot_do_is_refused():
    for inputs in ({"r": 3}, {"r": 0}, {"r": 6}, {"k": 6}):
        with pytest.raises(ValueError, match="r must be even and at least 2, and r and k at most d=5"):
            PrintedMBEG(5, m=600, **inputs).ask()
    with pytest.warns(UserWarning, match="m >= 575"):
        PrintedMBEG(5, 1, m=100).ask()
    with warnings.catch_warnings(action="error"):
        PrintedMBEG(5, 1, m=600).ask()
