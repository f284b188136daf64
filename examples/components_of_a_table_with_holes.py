"""
Components of a table with holes
================================

Principal components of rows with most entries missing: one fit, a stream of batches, two halves merged, and what to trust.
"""

import numpy as np

from lacunar.subspace import POPCA

rng = np.random.default_rng(0)
COLUMNS, ROWS = 40, 3000
BASIS = np.linalg.qr(rng.normal(size=(COLUMNS, 3)))[0].T


def table(n):
    """Rows of three strong directions, offset and noisy; a fifth of the entries is seen."""
    X = (rng.normal(size=(n, 3)) * [6, 5, 4]) @ BASIS + 10 + rng.normal(size=(n, COLUMNS))
    return np.where(rng.random(X.shape) < 0.2, X, np.nan), X


def captured(model):
    return np.sum((model.components_ @ BASIS.T) ** 2) / len(BASIS)


def main():
    X, whole = table(ROWS)
    model = POPCA("holdout", random_state=0).fit(X)
    found = model.diagnostics_
    print(
        f"{model.n_components_} components, {captured(model):.3f} of the subspace; variances {model.explained_variance_.round(1)}"
    )
    print(
        f"a pair of columns was seen together in {found['median_joint_count']:.0f} rows (median); noise {found['lambda_min']:.2f}"
    )

    holes = np.isnan(X)
    error = np.sqrt(np.mean((model.impute(X) - whole)[holes] ** 2))
    print(
        f"holes filled with an error of {error:.2f} (noise alone 1, column means {np.std(whole - whole.mean(axis=0)):.2f})"
    )
    codes, std = model.transform(X[:1], return_std=True)
    print("codes of the first row", codes[0].round(1), "+-", std[0].round(1))

    stream = POPCA(3)
    for batch in np.array_split(X[: ROWS // 2], 10):  # sums are kept, rows are not
        stream.partial_fit(batch)
    other = POPCA(3).partial_fit(X[ROWS // 2 :])  # on another machine
    print(f"ten batches and another half, merged: {captured(stream.merge(other)):.3f}, without refinement")


if __name__ == "__main__":
    main()
