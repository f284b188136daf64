"""KARMA: the Gram matrix by its three paths, and the solvers over it, over support rows and over a weight table."""

from functools import partial

import numpy as np

from bench.hot import case
from bench.hot.data import dense_and_mask, low_rank
from lacunar.karma import KarmaFeatures
from lacunar.karma.solvers import OnlineModel, PrimalModel, solve_crammer_singer, solve_dual
from lacunar.kernels import KernelForm, karma_kernel

SOME = 50  # rows of a large answer that are checked


def raw_gram(rows, some=SOME):
    """The first rows of S * (N + 1), gamma=2 on raw counts."""
    values, seen = dense_and_mask(rows)
    return (values[:some] @ values.T) * (seen[:some] @ seen.T + 1)


@case("gram, dense", small={"method": "dense", "n": 240, "d": 60}, large={"method": "dense", "n": 4000, "d": 400})
@case("gram, spmm", small={"method": "spmm", "n": 240, "d": 60}, large={"method": "spmm", "n": 4000, "d": 400})
@case(
    "gram, inverted",
    small={"method": "inverted", "n": 240, "d": 60, "share": 10},
    large={"method": "inverted", "n": 4000, "d": 2000, "share": 100},
)
def gram(method, n, d, share=2):
    rows = low_rank(n, d, 5, d // share)[0]
    return partial(karma_kernel, rows, count_scale="raw", method=method), partial(same_gram, raw_gram(rows))


def same_gram(expected, found):
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@case("gram, four gammas of other rows", small={"n": 200, "d": 60}, large={"n": 3000, "d": 400})
def grams(n, d):
    rows, others = low_rank(n, d, 5, d // 2)[0], low_rank(n, d, 5, d // 3, seed=1)[0]
    gammas = [1, 2, 3, 4]

    def check(found):
        (values, seen), (theirs, there) = dense_and_mask(rows[:SOME]), dense_and_mask(others)
        product, common = values @ theirs.T, seen @ there.T
        for gamma, gram in zip(gammas, found, strict=True):
            same_gram(product * sum(common**power for power in range(gamma)), gram)

    return partial(karma_kernel, rows, others, gamma=gammas, count_scale="raw"), check


def cosine_gram(n, d=200, observed=30):
    rows, y, codes, _ = low_rank(n, d, 5, observed)
    return karma_kernel(rows, normalize="cosine"), y, codes


def primal_and_dual(gram, y, C, coef):
    f = gram.astype(np.float64) @ coef
    half = coef @ f / 2
    return half + C * np.maximum(0, 1 - y * f).sum(), y @ coef - half


@case("dual ascent, hinge", small={"n": 200}, large={"n": 3000})
def dual(n, C=1.0):
    gram, y, _ = cosine_gram(n)

    def check(result):
        primal, dual = primal_and_dual(gram, y, C, result.coef)
        assert dual <= primal <= dual + 1e-3 * primal * (1 + 1e-6)

    return partial(solve_dual, gram, y, np.full(n, C), tol=1e-3), check


@case("dual ascent, Crammer-Singer", small={"n": 200}, large={"n": 2000})
def crammer_singer(n, C=1.0):
    gram, _, codes = cosine_gram(n)
    label = np.argmax(codes[:, :3], axis=1)

    def check(result):
        scores = gram.astype(np.float64) @ result.coef
        others = scores + 1 - np.eye(3)[label]
        primal = np.sum(result.coef * scores) / 2 + C * np.sum(others.max(axis=1) - scores[np.arange(n), label])
        dual = np.sum(result.coef * np.eye(3)[label]) - np.sum(result.coef * scores) / 2
        assert dual <= primal <= dual + 1e-3 * primal * (1 + 1e-6)

    return partial(solve_crammer_singer, gram, label, 3, np.full(n, C), tol=1e-3), check


def streams(n, d, observed, gamma=2):
    rows, y, _, _ = low_rank(n, d, 5, observed)
    form = KernelForm.fit(rows, gamma=gamma, constant=1.0, normalize="trace")
    return rows, y[:, None], partial(new_stream, form, d)


def new_stream(form, d, kind, **options):
    return kind(form, d, 1, loss="hinge", rho=1e-3, iterate="last", dtype=np.float64, **options)


def same_stream(mine, other, rows, y):
    """A pass over the weight table and one over support rows decide alike: two programs, one algorithm."""

    def run():
        return mine().partial_fit(rows, y)

    def check(found):
        expected = other().partial_fit(rows[:2000], y[:2000])
        np.testing.assert_allclose(found[:2000], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())

    return run, check


@case("primal pass", small={"n": 300, "d": 60}, large={"n": 50_000, "d": 200})
@case("primal pass, wide", small={"n": 100, "d": 600}, large={"n": 5000, "d": 4000})
@case("primal pass, by blocks", small={"n": 2100, "d": 1100}, large={"n": 20_000, "d": 2000})
@case(
    "primal pass, gamma 3",
    small={"n": 300, "d": 30, "observed": 8, "gamma": 3},
    large={"n": 50_000, "d": 100, "observed": 15, "gamma": 3},
)
def primal(n, d, observed=20, gamma=2):
    rows, y, new = streams(n, d, observed, gamma)
    return same_stream(partial(new, PrimalModel), partial(new, OnlineModel), rows, y)


@case("primal pass, hashed", small={"n": 300, "d": 60}, large={"n": 50_000, "d": 2000})
def hashed(n, d, observed=20):
    """2^20 entries at most: a share of the errors of the whole table, as few entries collide."""
    rows, y, new = streams(n, d, observed)

    def check(found):
        assert np.mean(found[n // 2 :] * y[n // 2 :] < 0) < 0.45
        whole = new(PrimalModel).partial_fit(rows[:2000], y[:2000])
        assert np.corrcoef(found[:2000, 0], whole[:, 0])[0, 1] > 0.8

    return lambda: new(PrimalModel, hash_bits=20).partial_fit(rows, y), check


@case("online, budget of 100", small={"n": 300, "d": 60}, large={"n": 5000, "d": 200}, counted=False)
def budgeted(n, d, observed=20):
    rows, y, new = streams(n, d, observed)

    def run():
        model = new(OnlineModel, budget=100, block=32)
        return model.partial_fit(rows, y), model

    def check(made):
        decisions, model = made
        expected = new(OnlineModel).partial_fit(rows[:100], y[:100])
        np.testing.assert_allclose(decisions[:100], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
        assert len(model.coef()) <= 100

    return run, check


@case(
    "decisions, primal",
    small={"n": 300, "d": 60, "kind": PrimalModel},
    large={"n": 50_000, "d": 200, "kind": PrimalModel},
)
@case(
    "decisions, online",
    small={"n": 300, "d": 60, "kind": OnlineModel},
    large={"n": 5000, "d": 200, "kind": OnlineModel},
)
def decisions(n, d, kind, observed=20):
    rows, y, new = streams(n, d, observed)
    fitted, other = new(PrimalModel), new(OnlineModel)
    for model in (fitted, other):
        model.partial_fit(rows[:1000], y[:1000])
    mine, theirs = (fitted, other) if kind is PrimalModel else (other, fitted)

    def check(found):
        expected = theirs.decide(rows[:500])
        np.testing.assert_allclose(found[:500], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())

    return partial(mine.decide, rows), check


@case("online block", small={"n": 300, "d": 60}, large={"n": 5000, "d": 200})
def online(n, d, observed=20):
    rows, y, new = streams(n, d, observed)
    return same_stream(partial(new, OnlineModel, block=256), partial(new, PrimalModel), rows, y)


@case("primal ascent", small={"n": 200, "d": 60}, large={"n": 20_000, "d": 200})
def ascent(n, d, observed=20):
    rows, y, _, _ = low_rank(n, d, 5, observed)
    form = KernelForm(2, cosine=True)

    def run():
        model = PrimalModel(form, d, 1, loss="hinge", rho=1e-5, dtype=np.float64)
        return model, model.ascend(rows, y[:, None], np.ones(n), tol=1e-3, max_iter=1000, rng=np.random.default_rng(0))

    def check(made):
        model, result = made
        assert result.gap <= 1e-3
        loss = np.maximum(0, 1 - y * model.decide(rows)[:, 0]).sum()
        assert loss <= result.primal[0] <= loss + n  # the norm is what the rows' losses leave

    return run, check


@case("features, exact", small={"n": 200, "d": 60}, large={"n": 5000, "d": 200})
def features(n, d, observed=10):
    rows = low_rank(n, d, 5, observed)[0]
    model = KarmaFeatures(method="exact", normalize=None, standardize=False, constant=False).fit(rows)

    def check(found):
        same_gram(raw_gram(rows), (found[:SOME] @ found.T).toarray())

    return partial(model.transform, rows), check
