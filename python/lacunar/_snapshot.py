"""Re-exports of `lacunar._state`, until the last import of it has moved."""

from lacunar._state import SavePoint, all_or_nothing, going_back

__all__ = ["SavePoint", "all_or_nothing", "going_back"]
