"""
When being missing says something
=================================

People with high values answer less often. `KarmaClassifierCV` tries kernels with indicators, which compare who answered what, and
says by leave-one-out whether that is worth it: it is where high values are hidden, and not where chance hides them.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import KarmaClassifierCV
from lacunar.datasets import hide_mcar, hide_mnar
from lacunar.plotting import ScoresDisplay

rng = np.random.default_rng(0)
factors = rng.normal(size=(800, 2))
complete = factors @ rng.normal(size=(2, 12)) + 0.7 * rng.normal(size=(800, 12))
y = np.where(factors[:, 0] + 0.3 * rng.normal(size=800) > 0, "high", "low")
train = np.arange(800) < 500

names, errors = [], []
for kind, hidden in [("at random", hide_mcar(complete, 0.3, random_state=0)),
                     ("high values hidden", hide_mnar(complete, 0.3, strength=3.0, random_state=0))]:  # fmt: skip
    for indicators in (False, True):
        model = KarmaClassifierCV(indicators=[indicators], kernels="karma").fit(hidden.data[train], y[train])
        names.append(f"{kind}, {'with' if indicators else 'without'} indicators")
        errors.append(np.mean(model.predict(hidden.data[~train]) != y[~train]))
    chosen = KarmaClassifierCV(kernels="karma").fit(hidden.data[train], y[train]).best_params_
    print(f"{kind}: leave-one-out chooses indicators={chosen['indicators']}, gamma={chosen['gamma']}")

spread = [np.sqrt(e * (1 - e) / 300) for e in errors]
ScoresDisplay(names, errors, spread, ["with " in name for name in names], "error rate").plot(
    plt.subplots(figsize=(5.6, 3), layout="constrained")[1]
)
plt.show()
