"""
Components of a table with missing values
=========================================

Principal components of rows with four fifths of the entries missing: one fit, a stream of batches, two halves merged, and how many rows
it takes beside PCA of mean-imputed rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer

from lacunar.lowrank import POPCA

rng = np.random.default_rng(0)
BASIS = np.linalg.qr(rng.normal(size=(40, 3)))[0].T
whole = (rng.normal(size=(3000, 3)) * [6, 5, 4]) @ BASIS + 10 + rng.normal(size=(3000, 40))
X = np.where(rng.random(whole.shape) < 0.2, whole, np.nan)


def captured(components):
    return np.sum((components @ BASIS.T) ** 2) / len(BASIS)


model = POPCA("holdout", random_state=0).fit(X)
print(f"{model.n_components_} components, {captured(model.components_):.3f} of the subspace")
joint = model.diagnostics_["median_joint_count"]
print(f"a pair of columns was seen together in {joint:.0f} rows (median)")
error = np.sqrt(np.mean((model.impute(X) - whole)[np.isnan(X)] ** 2))
print(
    f"missing entries filled with an error of {error:.2f}; noise alone 1, column means {whole.std(axis=0).mean():.2f}"
)

# %%
# Sums are kept, rows are not: batches here, another half on another machine, then both together.
stream = POPCA(3)
for batch in np.array_split(X[:1500], 10):
    stream.partial_fit(batch)
other = POPCA(3).partial_fit(X[1500:])
print(f"merged: {captured(stream.merge(other).components_):.3f}, without refinement")

# %%
# Mean imputation needs several times the rows.
rows = [300, 600, 1200, 2400, 3000]
ours = [1 - captured(POPCA(3).fit(X[:n]).components_) for n in rows]
filled = [1 - captured(PCA(3).fit(SimpleImputer().fit_transform(X[:n])).components_) for n in rows]
ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
ax.loglog(rows, ours, "-o", color="#0b7a75", lw=2, label="POPCA")
ax.loglog(rows, filled, "--s", color="#d55e00", lw=2, label="PCA of mean-imputed rows")
ax.set(xlabel="rows, a fifth of the entries seen", ylabel="share of the subspace missed")
ax.set_xticks(rows, [str(n) for n in rows])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=11)
plt.show()
