"""The hinge dual over a cached Gram against scikit-learn's SVC(kernel="precomputed").

`pytest bench/pages/dual.py --benchmark-enable` times our solver and checks its gap. As a script,
`python bench/pages/dual.py 5000 --repeats 5`, it interleaves both and prints the ratio of process CPU times
(`OMP_NUM_THREADS=1` keeps BLAS out of the Gram's way; neither solver uses threads).
SVC minimises the same loss with a free bias and stops by its own `tol`; its relative gap is printed beside ours.
"""

import argparse

import numpy as np
import pytest
from primal import timed
from sklearn.svm import SVC

from lacunar.karma.solvers import solve_dual


def make_gram(n, d=200, observed=30, rank=5, noise=0.1, seed=0):
    """Cosine-normalised KARMA Gram (gamma=2) of a rank-5 table seen at 30 of 200 places a row, labels of a linear rule."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y = np.sign(X @ rng.normal(size=d))
    y[rng.random(n) < noise] *= -1
    mask = (rng.random((n, d)).argsort(axis=1) < observed).astype(np.float32)
    X = X.astype(np.float32) * mask
    gram = X @ X.T
    counts = mask @ mask.T
    counts += 1
    gram *= counts
    scale = 1 / np.sqrt(np.diagonal(gram))
    gram *= scale[:, None]
    gram *= scale
    return gram, y


def hinge_gap(gram, y, C, coef, bias=0.0):
    """Relative duality gap of coefficients with 0 <= y coef <= C, from scratch in float64."""
    f = np.concatenate([gram[i : i + 500].astype(np.float64) @ coef for i in range(0, len(y), 500)])
    primal = coef @ f / 2 + C * np.maximum(0, 1 - y * (f + bias)).sum()
    return (primal - (y @ coef - coef @ f / 2)) / primal


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_hinge(benchmark, C):
    gram, y = make_gram(2000)
    result = benchmark(solve_dual, gram, y, np.full(len(y), C))
    assert result.converged
    assert hinge_gap(gram, y, C, result.coef) <= 1e-3 * (1 + 1e-6)


def compare(n, C, tol, svc_tol, repeats):
    gram, y = make_gram(n)
    gram64 = gram.astype(np.float64)
    upper = np.full(n, C)
    times = {"lacunar": [], "SVC": []}
    for _ in range(repeats):
        seconds, ours = timed(lambda: solve_dual(gram, y, upper, tol=tol))
        times["lacunar"].append(seconds)
        seconds, svc = timed(lambda: SVC(C=C, kernel="precomputed", tol=svc_tol).fit(gram64, y))
        times["SVC"].append(seconds)
    theirs = np.zeros(n)
    theirs[svc.support_] = svc.dual_coef_[0]
    our_gap, svc_gap = hinge_gap(gram, y, C, ours.coef), hinge_gap(gram, y, C, theirs, svc.intercept_[0])
    assert our_gap <= tol * (1 + 1e-6), our_gap
    middle = {name: np.median(values) for name, values in times.items()}
    print(f"n={n} C={C:g}, median of {repeats}: lacunar {1e3 * middle['lacunar']:.0f} ms (gap {our_gap:.1e}), ", end="")
    print(f"SVC tol={svc_tol:g} {1e3 * middle['SVC']:.0f} ms (gap {svc_gap:.1e}): ", end="")
    print(f"{middle['SVC'] / middle['lacunar']:.1f}x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="?", default=5000)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3, help="our relative gap")
    parser.add_argument("--svc-tol", type=float, default=1e-3, help="SVC's own stopping tolerance")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.n, arguments.repeats = 500, 1
    compare(arguments.n, arguments.C, arguments.tol, arguments.svc_tol, arguments.repeats)
