"""Subspaces followed along a stream of partially observed rows: PETRELS and GROUSE."""

from lacunar.tracking._grouse import GROUSE
from lacunar.tracking._petrels import PETRELS

__all__ = ["GROUSE", "PETRELS"]
