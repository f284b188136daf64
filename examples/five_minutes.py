"""
Five minutes with a table
=========================

A made-up clinic: 600 patients with a ward, a date of admission, an age, and blood tests that are ordered in panels, so that three columns are
missing together. We predict who comes back from whatever was measured. This is the table as it comes, text, dates and gaps included:
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from lacunar import LacunarClassifier, load_model, save_model
from lacunar.plotting import ImportanceDisplay, MissingnessDisplay

rng, n = np.random.default_rng(0), 600
illness = rng.normal(size=n)
panels = ["sodium", "urea", "lactate"], ["protein", "platelets", "ferritin"]
table = pd.DataFrame({"ward": rng.choice(["surgery", "heart", "lungs", None], n)})
table["admitted"] = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
table["age"] = rng.integers(20, 90, n)
for panel in panels:
    table[panel] = (illness[:, None] + 0.8 * rng.normal(size=(n, 3))).round(1)
    table.loc[rng.random(n) < 0.4, panel] = np.nan  # ordered as a whole, or not at all
returned = np.where(illness + 0.02 * (table["age"] - 55) + 0.5 * rng.normal(size=n) > 0, "yes", "no")
table.head()

# %%
# **See what is missing.** Observed entries are dark, and rows that lack the same columns stand together.
MissingnessDisplay.from_table(table.iloc[:, 2:], ax=plt.subplots(layout="constrained")[1])
plt.show()

# %%
# **Fit and predict.** The frame goes in as it is: text becomes categories, dates become days, months and weekdays, and you fill nothing
# in. Gradient boosting gets the same columns for comparison; on 200 rows, two points more or less are chance.
model = LacunarClassifier(random_state=0).fit(table[:400], returned[:400])
coded = table.assign(ward=table["ward"].astype("category"), admitted=table["admitted"].astype("int64"))
boosting = HistGradientBoostingClassifier(random_state=0).fit(coded[:400], returned[:400])
test, answers = table[400:], returned[400:]
print(f"right: lacunar {model.score(test, answers):.0%}, boosting {boosting.score(coded[400:], answers):.0%}")

# %%
# **How sure is it?** Mean probability of the predicted class, by how many columns of a patient are known: fewer tests, less certainty.
sure = pd.Series(model.predict_proba(test).max(axis=1), index=test.index)
sure.groupby(test.count(axis=1)).agg(["mean", "size"]).round(2).rename_axis("columns known")

# %%
# **Which columns matter?** Each is shuffled on rows that the model has not seen; the bar is what that costs.
ImportanceDisplay.from_estimator(model, test, answers, ax=plt.subplots(layout="constrained")[1])
plt.show()

# %%
# **Keep the model.** The file holds arrays and JSON, no pickle: reading one never runs code from it.
file = tempfile.mkdtemp() + "/returns.lacunar"
save_model(model, file)
print("the same predictions:", (load_model(file).predict(test) == model.predict(test)).all())
