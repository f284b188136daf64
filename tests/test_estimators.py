"""One contract for every estimator: scikit-learn's checks, sparse containers, index widths, weights, pickles."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lacunar import KarmaClassifier, KarmaRegressor

ESTIMATORS = [
    KarmaClassifier(),
    KarmaClassifier(options="paper", normalize=None),
    KarmaClassifier(indicators=True, normalize="cosine", class_weight="balanced"),
    KarmaRegressor(),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_contract(estimator, check):
    check(estimator)
