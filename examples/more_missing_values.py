"""
What would more missing values cost?
====================================

Before a survey drops questions: hide more and more of the answers that are there, and see what each learner loses. KARMA beside
imputation and gradient boosting; bands are one standard error over three draws.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar import KarmaRegressorCV
from lacunar.papers.karma import make_block_margin
from lacunar.plotting import ShareCurveDisplay

data = make_block_margin(400, 30, 4, random_state=0)
learners = {
    "KARMA": KarmaRegressorCV(),
    "mean + ridge": make_pipeline(SimpleImputer(keep_empty_features=True), RidgeCV(np.logspace(-3, 3, 7))),
    "gradient boosting": HistGradientBoostingRegressor(max_iter=50, random_state=0),
}
ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
display = ShareCurveDisplay.from_estimator(learners, data.data, data.target, shares=[0.3, 0.5, 0.7, 1.0], ax=ax)
for name, losses in display.losses.items():
    print(f"{name:18s} RMSE {losses[0].mean():.2f} with {display.shares[0]:.0%} seen, {losses[-1].mean():.2f} with all")
plt.show()
