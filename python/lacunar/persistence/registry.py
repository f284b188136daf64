"""What a model file may name: a closed table, imported on demand. Nothing else is ever imported by reading a file."""

from __future__ import annotations

import importlib
import sys

# Name in the file -> module and attribute.
CLASSES: dict[str, tuple[str, str]] = {
    "lacunar.KarmaClassifier": ("lacunar.karma", "KarmaClassifier"),
    "lacunar.KarmaRegressor": ("lacunar.karma", "KarmaRegressor"),
    "lacunar.KarmaOnlineClassifier": ("lacunar.karma", "KarmaOnlineClassifier"),
    "lacunar.KarmaOnlineRegressor": ("lacunar.karma", "KarmaOnlineRegressor"),
    "lacunar.KarmaClassifierCV": ("lacunar.karma", "KarmaClassifierCV"),
    "lacunar.KarmaRegressorCV": ("lacunar.karma", "KarmaRegressorCV"),
    "lacunar.PrintedKarmaClassifier": ("lacunar.papers.karma", "PrintedKarmaClassifier"),
    "lacunar.PrintedKarmaRegressor": ("lacunar.papers.karma", "PrintedKarmaRegressor"),
    "lacunar.KarmaFeatures": ("lacunar.karma", "KarmaFeatures"),
    "lacunar.KernelSelection": ("lacunar.karma.selection", "KernelSelection"),
    "lacunar.LowRankImputer": ("lacunar.lowrank", "LowRankImputer"),
    "lacunar.TableEncoder": ("lacunar.encode", "TableEncoder"),
    "lacunar.Imputer": ("lacunar.impute", "Imputer"),
    "lacunar.MultipleImputer": ("lacunar.impute", "MultipleImputer"),
    "lacunar.SLRMRegressor": ("lacunar.lowrank", "SLRMRegressor"),
    "lacunar.SLRMOnlineRegressor": ("lacunar.lowrank", "SLRMOnlineRegressor"),
    "lacunar.SLRMRegressorCV": ("lacunar.lowrank", "SLRMRegressorCV"),
    "lacunar.LowRankPosterior": ("lacunar.lowrank.posterior", "LowRankPosterior"),
    "lacunar.PosteriorRidge": ("lacunar.lowrank.posterior", "PosteriorRidge"),
    "lacunar.GaussianRegressor": ("lacunar.lowrank", "GaussianRegressor"),
    **{f"lacunar.papers.slrm.{name}": ("lacunar.papers.slrm", name) for name in ("PrintedSLRM", "MPCR", "SMPCR")},
    **{
        f"lacunar.papers.subspace.{name}": ("lacunar.papers.subspace", name) for name in ("PrintedPOPCA", "PrintedMBEG")
    },
    "lacunar.POPCA": ("lacunar.lowrank", "POPCA"),
    "lacunar.PETRELS": ("lacunar.lowrank", "PETRELS"),
    "lacunar.GROUSE": ("lacunar.lowrank", "GROUSE"),
    "lacunar.ActivePOPCA": ("lacunar.active", "ActivePOPCA"),
    "lacunar.MBEG": ("lacunar.active", "MBEG"),
    "lacunar.GeomClassifier": ("lacunar.papers.karma", "GeomClassifier"),
    "lacunar.MatrixCompletionClassifier": ("lacunar.papers.karma", "MatrixCompletionClassifier"),
    "lacunar.MatrixCompletionRegressor": ("lacunar.papers.karma", "MatrixCompletionRegressor"),
    **{
        f"lacunar.{name}": ("lacunar.completion", name)
        for name in ("Identity", "Kernel", "KernelFunction", "Features", "Graph", "Mix")
    },
    "lacunar.OnlineMatrixClassifier": ("lacunar.completion", "OnlineMatrixClassifier"),
    "lacunar.MatrixExponentiatedGradient": ("lacunar.papers.completion", "MatrixExponentiatedGradient"),
    "lacunar.PrintedMEG": ("lacunar.papers.completion", "PrintedMEG"),
    "lacunar.MaskConformalRegressor": ("lacunar.uncertainty", "MaskConformalRegressor"),
    "lacunar.MaskConformalClassifier": ("lacunar.uncertainty", "MaskConformalClassifier"),
    "lacunar.TableModel": ("lacunar.comparison", "TableModel"),
    "lacunar.LacunarClassifier": ("lacunar.learner", "LacunarClassifier"),
    "lacunar.LacunarRegressor": ("lacunar.learner", "LacunarRegressor"),
    "lacunar.learner.TableViews": ("lacunar.learner.views", "TableViews"),
    "lacunar.learner.AddedColumns": ("lacunar.learner.added", "AddedColumns"),
    "lacunar.learner.LevelMeans": ("lacunar.learner.levels", "LevelMeans"),
    "lacunar.learner.TextNumbers": ("lacunar.learner.texts", "TextNumbers"),
    "lacunar.learner.Ensemble": ("lacunar.learner.ensemble", "Ensemble"),
    "lacunar.learner.TargetVariance": ("lacunar.learner.targets", "TargetVariance"),
    "lacunar.learner.ClassInformation": ("lacunar.learner.information", "ClassInformation"),
    "lacunar.learner.KeptRows": ("lacunar.learner.kept", "KeptRows"),
    "lacunar.learner.Trees": ("lacunar._trees", "Trees"),
    "lacunar.uncertainty.ClassGaussians": ("lacunar.uncertainty.class_gaussians", "ClassGaussians"),
    "lacunar.uncertainty.BoostedGaussian": ("lacunar.uncertainty.boosted", "BoostedGaussian"),
    "lacunar.uncertainty.TargetPower": ("lacunar.uncertainty.power", "TargetPower"),
    "lacunar.uncertainty.ConformalScores": ("lacunar.uncertainty.conformal", "ConformalScores"),
    "lacunar.learner.PredictiveDeviation": ("lacunar.uncertainty.deviation", "PredictiveDeviation"),
    "lacunar.learner.MaskComparison": ("lacunar.learner.masks", "MaskComparison"),
    "lacunar.learner.ExtraMissingProbabilities": ("lacunar.uncertainty.shift", "ExtraMissingProbabilities"),
    "lacunar.learner.ExtraMissingVariance": ("lacunar.uncertainty.shift", "ExtraMissingVariance"),
    **{f"lacunar.learner.{name}": ("lacunar.learner.trees", name) for name in ("BoostingMember", "ForestMember")},
    **{
        f"lacunar.learner.{name}": ("lacunar.learner.members", name)
        for name in (
            "KernelMember",
            "GaussianMember",
            "LinearMember",
            "LogisticMember",
        )
    },
    **{f"lacunar.learner.{name}": ("lacunar.learner.ensemble", name) for name in ("LogPool", "LinearPool")},
}
# Frozen dataclasses of plain fields, which `_check_loaded` checks.
RECORDS: dict[str, tuple[str, str]] = {
    "lacunar.KernelForm": ("lacunar.kernels", "KernelForm"),
    "lacunar.RadialForm": ("lacunar.kernels", "RadialForm"),
    "lacunar.Reading": ("lacunar.observed.cells", "Reading"),
    "lacunar.impute.Column": ("lacunar.impute.tables", "Column"),
    "lacunar.impute.Learned": ("lacunar.impute.plans", "Learned"),
}

# What a parameter `cv` may be.
SPLITTERS: dict[str, tuple[str, str]] = {
    f"sklearn.model_selection.{name}": ("sklearn.model_selection", name)
    for name in (
        "KFold",
        "StratifiedKFold",
        "GroupKFold",
        "StratifiedGroupKFold",
        "LeaveOneGroupOut",
        "TimeSeriesSplit",
    )
}


def name_of(cls: type, table: dict[str, tuple[str, str]]) -> str | None:
    """The name under which a class is stored, or None when it is not one of ours."""
    for name, (module, attribute) in table.items():
        if getattr(sys.modules.get(module), attribute, None) is cls:
            return name
    return None


def class_of(name: object, table: dict[str, tuple[str, str]]) -> type | None:
    """The class stored under this name, or None when the table does not have it."""
    if not isinstance(name, str) or name not in table:
        return None
    module, attribute = table[name]
    cls = getattr(importlib.import_module(module), attribute)
    assert isinstance(cls, type)
    return cls
