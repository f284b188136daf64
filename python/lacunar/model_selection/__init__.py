"""Folds for completion: over entries, over rows never seen before, over columns never seen before."""

from lacunar.model_selection._pairs import ColdColumnKFold, ColdRowKFold, EntryKFold

__all__ = ["ColdColumnKFold", "ColdRowKFold", "EntryKFold"]
