"""SLRM: Algorithms 1 and 2, MPCR and SMPCR, the theorem and the synthetic tables of Ganti and Willett (2015)."""

from lacunar.papers.slrm.algorithm import PrintedSLRM
from lacunar.papers.slrm.mpcr import MPCR, SMPCR
from lacunar.papers.slrm.theory import (
    coherence,
    complexity_bound,
    gate_level,
    joint_objective,
    loss_bound,
    risk_bound,
)
from lacunar.papers.slrm.worlds import make_sparse_regression

__all__ = [
    "MPCR",
    "SMPCR",
    "PrintedSLRM",
    "coherence",
    "complexity_bound",
    "gate_level",
    "joint_objective",
    "loss_bound",
    "make_sparse_regression",
    "risk_bound",
]
