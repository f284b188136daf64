"""Subspace learning: POPCA and MBEG as printed, the bounds and the synthetic tables of Gonen et al. (2016)."""

from lacunar.papers.subspace.mbeg import PrintedMBEG
from lacunar.papers.subspace.popca import PrintedPOPCA
from lacunar.papers.subspace.theory import (
    mbeg_error_bound,
    mbeg_sample_bound,
    passive_lower_bound,
    penalised_covariance,
    penalised_error_bound,
    popca_error_bound,
    popca_sample_bound,
    sample_lower_bound,
)
from lacunar.papers.subspace.worlds import make_coins, make_unit_vectors

__all__ = [
    "PrintedMBEG",
    "PrintedPOPCA",
    "make_coins",
    "make_unit_vectors",
    "mbeg_error_bound",
    "mbeg_sample_bound",
    "passive_lower_bound",
    "penalised_covariance",
    "penalised_error_bound",
    "popca_error_bound",
    "popca_sample_bound",
    "sample_lower_bound",
]
