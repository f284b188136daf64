"""`KernelModes`: features of vertices of a growing kernel, and the leading directions of a fixed one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lacunar._eigen import canonical_turn
from lacunar._typing import Floats
from lacunar.completion.side import SideState

_NEW_SHARE = 0.1  # of a vertex's kernel value with itself that features must leave out for a direction of its own
_SMALLEST = 1e-5  # length of a mode beside the longest; what is shorter is rounding


def leading_modes(K: Floats, most: int) -> Floats:
    """The leading directions (n, at most `most`) of a kernel: their products are its nearest of that rank."""
    values, vectors = np.linalg.eigh(K)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    modes: Floats = (vectors * np.sqrt(values)) @ canonical_turn(values, vectors, most)
    return modes


class KernelModes:
    """Features (n, most) of the vertices of a growing kernel, whose products come near it.

    The vertices known at the beginning give its leading modes, other vertices have theirs by Nystroem's formula. Where
    there are fewer modes than places, a vertex of which features say too little may open a direction of its own, when
    it is learned and not when it is asked about: what is asked changes nothing. What was learned keeps its places.
    """

    def __init__(self, state: SideState, most: int) -> None:
        self._state, self.most = state, most
        self._opened: list[
            tuple[int, Floats]
        ] = []  # vertices that have opened a direction, in order, and their features
        modes = leading_modes(state.dense(), most) if state.size else np.zeros((0, 0))
        lengths = np.linalg.norm(modes, axis=0)
        modes = modes[:, lengths > _SMALLEST * lengths.max(initial=0.0)]
        self.set_modes(np.pad(modes, ((0, 0), (0, most - modes.shape[1]))))

    def set_modes(self, modes: Floats) -> None:
        """Modes (n, most) of the vertices known at the beginning, those that are not there 0."""
        self.modes = np.ascontiguousarray(modes)  # one order of sums, whether it comes from a file or not
        self._n_modes = int(np.sum(self.modes.any(axis=0)))
        self._solved: Floats = np.zeros(modes.shape)  # K(x, vertices) times this are the places of x
        self._solved[:, : self._n_modes] = np.linalg.pinv(self.modes[:, : self._n_modes]).T
        self.set_landmarks([])

    def set_landmarks(self, landmarks: Sequence[int]) -> None:
        """These directions instead of the present ones; ValueError for a vertex that opens none."""
        self._opened = []
        for vertex in landmarks:
            if not self.opens(vertex):
                raise ValueError(f"vertex {vertex} of a state must open a direction; it does not. Take it again.")
            self.open(vertex)

    @property
    def landmarks(self) -> list[int]:
        """Vertices that have opened a direction, in order."""
        return [vertex for vertex, _ in self._opened]

    @property
    def full(self) -> bool:
        """Whether no vertex opens a direction any more."""
        return self._n_modes + len(self._opened) >= self.most

    def features(self, vertices: Sequence[int]) -> Floats:
        """Features (k, most) of vertices, each by itself: not a bit hangs on which others are asked about with it."""
        return np.array([self._place(vertex) for vertex in vertices]).reshape(-1, self.most)

    def _place(self, vertex: int) -> Floats:
        """Features (most,) of a vertex."""
        column = self._state.columns([vertex])[:, 0]
        features: Floats = column[: len(self.modes)] @ self._solved
        for k, (landmark, place) in enumerate(self._opened):
            at = self._n_modes + k
            features[at] = (column[landmark] - features @ place) / place[at]  # features are 0 there so far
        return features

    def opens(self, vertex: int) -> bool:
        """Whether `open` would add a direction for the vertex."""
        own, remainder = self._remainder(vertex)
        return not self.full and remainder > _NEW_SHARE * own

    def open(self, vertex: int) -> None:
        """Add a direction: the part of a vertex that its features do not express."""
        place = self._place(vertex)
        place[self._n_modes + len(self._opened)] = np.sqrt(self._remainder(vertex)[1])
        self._opened.append((vertex, place))

    def _remainder(self, vertex: int) -> tuple[float, float]:
        """K(x, x) and what features leave out of it."""
        place = self._place(vertex)
        own = float(self._state.columns([vertex])[vertex, 0])
        return own, own - float(place @ place)
