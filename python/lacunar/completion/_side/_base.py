"""`SideInformation`: what every descriptor has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from lacunar.completion._side._restore import restore
from lacunar.completion._side._state import SideState, refuse_state


class SideInformation(BaseEstimator):  # type: ignore[misc]
    """Side information described, not yet begun: arguments stored untouched, validated by `begin`.

    Descriptors are scikit-learn objects without `fit`: `get_params`, `set_params`, `clone` and `repr` work.
    """

    def begin(self) -> SideState:
        """Validate and make the state that an engine reads; every call makes a new one."""
        raise NotImplementedError

    def plain(self) -> SideInformation:
        """The same side information from plain data, for files: frames, graphs and scalars as arrays, csr_arrays and lists.

        Its state has the same digest. Raises what `begin` raises for arguments that cannot be read.
        """
        made: SideInformation = type(self)(**{**self.get_params(deep=False), **self._plain_params()})
        return made

    def _plain_params(self) -> dict[str, Any]:
        """Arguments that may be other than plain data."""
        return {}

    def resume(self, state: Mapping[str, Any]) -> SideState:
        """The state that was saved, when it was of this side information.

        Parameters
        ----------
        state : dict
            What `SideState.state` gave.

        Raises
        ------
        ValueError
            When it is the state of another side information.
        """
        begun = self.begin()
        if state.get("digest") != begun.digest():
            refuse_state(f"its digest is {state.get('digest')!r}, this is {begun.digest()!r}")
        return restore(state, begun)
