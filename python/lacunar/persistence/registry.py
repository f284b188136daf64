"""What a model file may name: a closed table, imported on demand. Nothing else is ever imported by reading a file."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def _table(*groups: tuple[str, str, str]) -> dict[str, tuple[str, str]]:
    """Names in the file, of which a prefix is the first part, and the module and attribute that each stands for."""
    return {f"{prefix}.{name}": (module, name) for prefix, module, names in groups for name in names.split()}


CLASSES = _table(
    (
        "lacunar",
        "lacunar.karma",
        "KarmaClassifier KarmaClassifierCV KarmaFeatures KarmaOnlineClassifier KarmaOnlineRegressor KarmaRegressor KarmaRegressorCV",
    ),
    ("lacunar", "lacunar.karma.selection", "KernelSelection"),
    (
        "lacunar",
        "lacunar.lowrank",
        "GROUSE GaussianRegressor LowRankImputer PETRELS POPCA SLRMOnlineRegressor SLRMRegressor SLRMRegressorCV",
    ),
    ("lacunar", "lacunar.lowrank.posterior", "LowRankPosterior PosteriorRidge"),
    ("lacunar", "lacunar.encode", "TableEncoder"),
    ("lacunar", "lacunar.impute", "Imputer MultipleImputer"),
    ("lacunar", "lacunar.active", "ActivePOPCA MBEG"),
    ("lacunar", "lacunar.completion", "Features Graph Identity Kernel KernelFunction Mix OnlineMatrixClassifier"),
    ("lacunar", "lacunar.uncertainty", "MaskConformalClassifier MaskConformalRegressor"),
    ("lacunar", "lacunar.comparison", "TableModel"),
    ("lacunar", "lacunar.learner", "LacunarClassifier LacunarRegressor"),
    ("lacunar.learner", "lacunar._trees", "Trees"),
    ("lacunar.learner", "lacunar.learner.added", "AddedColumns"),
    ("lacunar.learner", "lacunar.learner.ensemble", "Ensemble LinearPool LogPool"),
    ("lacunar.learner", "lacunar.learner.information", "ClassInformation"),
    ("lacunar.learner", "lacunar.learner.kept", "KeptRows"),
    ("lacunar.learner", "lacunar.learner.levels", "LevelMeans"),
    ("lacunar.learner", "lacunar.learner.masks", "MaskComparison"),
    ("lacunar.learner", "lacunar.learner.members", "GaussianMember KernelMember LinearMember LogisticMember"),
    ("lacunar.learner", "lacunar.learner.pairs", "PairMeans"),
    ("lacunar.learner", "lacunar.learner.targets", "TargetVariance"),
    ("lacunar.learner", "lacunar.learner.texts", "TextNumbers"),
    ("lacunar.learner", "lacunar.learner.trees", "BoostingMember ForestMember"),
    ("lacunar.learner", "lacunar.learner.views", "TableViews"),
    ("lacunar.learner", "lacunar.uncertainty.deviation", "ColumnDeviation PredictiveDeviation"),
    ("lacunar.learner", "lacunar.uncertainty.shift", "ExtraMissingProbabilities ExtraMissingVariance"),
    ("lacunar.uncertainty", "lacunar.uncertainty.boosted", "BoostedGaussian"),
    ("lacunar.uncertainty", "lacunar.uncertainty.class_gaussians", "ClassGaussians"),
    ("lacunar.uncertainty", "lacunar.uncertainty.conformal", "ConformalScores"),
    ("lacunar.uncertainty", "lacunar.uncertainty.power", "TargetPower"),
    ("lacunar", "lacunar.papers.completion", "MatrixExponentiatedGradient PrintedMEG"),
    (
        "lacunar",
        "lacunar.papers.karma",
        "GeomClassifier MatrixCompletionClassifier MatrixCompletionRegressor PrintedKarmaClassifier PrintedKarmaRegressor",
    ),
    ("lacunar.papers.slrm", "lacunar.papers.slrm", "MPCR PrintedSLRM SMPCR"),
    ("lacunar.papers.subspace", "lacunar.papers.subspace", "PrintedMBEG PrintedPOPCA"),
)
# Frozen dataclasses of plain fields, which `_check_loaded` checks.
RECORDS = _table(
    ("lacunar", "lacunar.kernels", "KernelForm RadialForm"),
    ("lacunar", "lacunar.observed.cells", "Reading"),
    ("lacunar.impute", "lacunar.impute.analyses", "CoxAnalysis LinearAnalysis LogisticAnalysis"),
    ("lacunar.impute", "lacunar.impute.columns", "Column"),
    ("lacunar.impute", "lacunar.impute.plans", "Learned"),
)
# What a parameter `cv` may be.
SPLITTERS = _table(
    (
        "sklearn.model_selection",
        "sklearn.model_selection",
        "GroupKFold KFold LeaveOneGroupOut StratifiedGroupKFold StratifiedKFold TimeSeriesSplit",
    )
)


def name_of(cls: type, table: dict[str, tuple[str, str]]) -> str | None:
    """The name under which a class is stored, or None when it is not one of ours."""
    for name, (module, attribute) in table.items():
        if getattr(sys.modules.get(module), attribute, None) is cls:
            return name
    return None


def class_of(name: object, table: dict[str, tuple[str, str]]) -> Any:
    """The class stored under this name. ValueError where the table does not have it."""
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"this lacunar knows no class {str(name)[:80]!r}; the file may be of a newer version")
    module, attribute = table[name]
    return getattr(importlib.import_module(module), attribute)
