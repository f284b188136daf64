"""The pool that the one learner makes of digits seen by four cameras, half of which are off."""

import matplotlib.pyplot as plt

from lacunar import LacunarClassifier
from lacunar.datasets import load_digit_quadrants
from lacunar.plotting import PoolDisplay

X, y, _ = load_digit_quadrants()
model = LacunarClassifier(random_state=0).fit(X, y)
PoolDisplay.from_estimator(model, ax=plt.subplots(figsize=(6, 2.8), layout="constrained")[1])
