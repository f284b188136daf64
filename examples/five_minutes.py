"""
Five minutes with a table
=========================

400 patients of intensive care, 114 measurements of their first two days, and who died in hospital (PhysioNet Challenge 2012; Silva et al.). A
quarter of the cells is missing, by what doctors chose to measure. We read the file, predict, ask how sure the model is and why, and keep it:
"""

import tempfile

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from lacunar import LacunarClassifier, load_model, save_model
from lacunar.datasets import load_patients
from lacunar.plotting import ImportanceDisplay, MissingnessDisplay

table = pd.read_csv(load_patients().filename)
died = table.pop("In-hospital_death")
table.iloc[:, :10].head()

# %%
# **See what is missing.** Observed entries are dark, and rows that lack the same columns stand together: some tests are ordered in panels.
MissingnessDisplay.from_table(table.filter(like="_last"), ax=plt.subplots(layout="constrained")[1])
plt.show()

# %%
# **Fit and predict.** The frame goes in as it is; text and dates would too, and you fill nothing in. Few patients die, so we look at
# probabilities. Gradient boosting gets the same rows for comparison; on 100 patients small differences are chance, and
# `the first page <../index.html>`_ has thousands.
old, new = slice(0, 300), slice(300, 400)
model = LacunarClassifier(random_state=0).fit(table[old], died[old])
boosting = HistGradientBoostingClassifier(random_state=0).fit(table[old], died[old])
for learner in model, boosting:
    print(f"{type(learner).__name__}: log loss {log_loss(died[new], learner.predict_proba(table[new])):.2f}")

# %%
# **How sure is it?** Chances of dying, beside the share that did, by how sick the model thinks the patient is.
chances = pd.Series(model.predict_proba(table[new])[:, 1], index=table[new].index)
groups = pd.qcut(chances, 4, labels=["lowest", "low", "high", "highest"])
pd.DataFrame({"chance": chances, "died": died[new]}).groupby(groups, observed=True).mean().round(2)

# %%
# **Which columns matter?** Each is shuffled on rows that the model has not seen; the bar is what that costs.
ImportanceDisplay.from_estimator(model, table[new], died[new], ax=plt.subplots(layout="constrained")[1])
plt.show()

# %%
# **Keep the model, and serve a row.** The file holds arrays and JSON, no pickle: reading one never runs code from it. A row arrives as a dict, and
# what it lacks is missing.
file = tempfile.mkdtemp() + "/patients.lacunar"
save_model(model, file)
row = {"Age": 80, "GCS_last": 7, "Lactate_last": 4.5}
print(f"chance of dying: {load_model(file).predict_proba(pd.DataFrame([row], columns=table.columns))[0, 1]:.2f}")
