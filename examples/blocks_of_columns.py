"""
Columns missing in blocks
=========================

Every row shows one, two or three of three blocks of columns, as when tests are ordered together. You fill nothing in: rows are
compared on what both show, and a longer gamma tells the blocks apart (Figure 3 of the KARMA paper). Above: what is seen, dark.
Below: KARMA does not mind how much of a row is missing, mean imputation does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar import KarmaRegressorCV
from lacunar.papers.karma import make_block_margin
from lacunar.plotting import CoverageDisplay, MissingnessDisplay

data = make_block_margin(900, 60, 6, random_state=0)
X, y, train = data.data, data.target, np.arange(900) < 500

karma = KarmaRegressorCV().fit(X[train], y[train])
imputed = make_pipeline(SimpleImputer(), RidgeCV(np.logspace(-3, 3, 13))).fit(X[train], y[train])
made = {"KARMA": karma.predict(X[~train]), "mean + ridge": imputed.predict(X[~train])}
for name, values in made.items():
    print(f"{name:13s} squared error {np.mean((values - y[~train]) ** 2):.4f}")

figure, (above, below) = plt.subplots(2, 1, figsize=(5.6, 5.2), layout="constrained")
MissingnessDisplay.from_table(X, ax=above)
CoverageDisplay.from_predictions(X[~train], y[~train], made, regression=True, n_bins=3, ax=below)
plt.show()
