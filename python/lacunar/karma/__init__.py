"""KARMA: kernel learning from rows with holes (Hazan, Livni, Mansour 2015)."""

from lacunar.karma._classifier import KarmaClassifier
from lacunar.karma._classifier_cv import KarmaClassifierCV
from lacunar.karma._regressor import KarmaRegressor
from lacunar.karma._regressor_cv import KarmaRegressorCV
from lacunar.karma._theory import (
    embedding_size,
    gamma_needed,
    objective_bound,
    regret_bound,
    theory_rho,
    truncation_bound,
)

__all__ = [
    "KarmaClassifier",
    "KarmaClassifierCV",
    "KarmaRegressor",
    "KarmaRegressorCV",
    "embedding_size",
    "gamma_needed",
    "objective_bound",
    "regret_bound",
    "theory_rho",
    "truncation_bound",
]
