"""Between the parameters of a classifier and its model at work: begin, resume, save."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar.completion._labels import Coding, read_thresholds
from lacunar.completion._model import Model, Trials
from lacunar.completion._side import Identity, SideInformation

_RESUMING = threading.RLock()
AUTO_SCALES = (0.5, 2.0)  # times step_scale; see docs/completion-measured.md


class Live:
    """Keeps the model at work in `_engine`; `state_` stands for it in files and pickles."""

    rows: Any
    cols: Any
    experts: Any
    thresholds: Any
    tol: float
    step_scale: float
    options: str | None
    conservative: bool
    randomized: bool
    random_state: Any
    classes_: NDArray[Any]
    settled_: bool
    seed_: int
    _engine: Model
    state_: dict[str, Any]

    # -- beginning --------------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[Model, Coding]:
        """A model that has learned nothing, all options checked; the estimator is not touched."""
        self._validate_params()  # type: ignore[attr-defined]
        thresholds = read_thresholds(self.thresholds)
        n_tasks = 1 if thresholds is None else len(thresholds)
        classes = np.array([-1, 1]) if thresholds is None else np.arange(n_tasks + 1)
        coding = Coding(classes, thresholds is not None, thresholds)
        return Model(self._experts(), n_tasks, tol=self.tol), coding

    def _experts(self) -> list[Any]:
        """The classifiers whose options the learners have; the first decides the scale of scores."""
        if self.experts is None:
            made = [self]
        elif isinstance(self.experts, str):
            made = self._automatic()
        else:
            made = list(self.experts)
            if not made:
                raise ValueError("experts must hold at least one classifier; got none. Use None, or 'auto'.")
            for k, each in enumerate(made):
                if not isinstance(each, type(self)) or each.experts is not None:
                    raise TypeError(
                        f"experts must be {type(self).__name__} without experts of their own; got {each!r} at position {k}."
                    )
        if self.options == "paper" and self.experts is not None:
            raise ValueError(f"experts must be None as printed; got {self.experts!r}. Leave out options='paper'.")
        none = Identity()
        return [Options(each, none) for each in made]

    def _automatic(self) -> list[Any]:
        """The side information as given, and none, at a few step scales."""
        made = []
        for given in (True, False) if (self.rows, self.cols) != (None, None) else (True,):
            for scale in AUTO_SCALES:
                sides = (self.rows, self.cols) if given else (None, None)  # the very objects: tables are shared
                options = dict(self.get_params(deep=False), experts=None, step_scale=scale * self.step_scale)  # type: ignore[attr-defined]
                options["rows"], options["cols"] = sides
                made.append(type(self)(**options))
        return made

    def _adopt(self, model: Model, coding: Coding, *, seed: int | None = None) -> None:
        self._engine = model
        self.seed_ = int(generator(self.random_state).integers(2**31)) if seed is None else seed
        self._adopt_coding(coding)

    @all_or_nothing
    def _adopted(self, model: Model, coding: Coding, learn: Callable[[], Trials]) -> Trials:
        """What `learn` returns, model and coding adopted before; where it fails they are not."""
        if not self.__sklearn_is_fitted__():
            self._adopt(model, coding)
        self._adopt_coding(coding)
        return learn()

    def _adopt_coding(self, coding: Coding) -> None:
        self.classes_, self.settled_ = coding.classes, coding.settled

    def _coding(self) -> Coding:
        return Coding(self.classes_, self.settled_, read_thresholds(self.thresholds))

    def _live(self) -> Model:
        """The model at work; begun if nothing was learned yet, or from `state_` after loading."""
        if "_engine" not in self.__dict__:
            with _RESUMING:  # several threads may ask a model that was just loaded
                if "_engine" in self.__dict__:
                    pass
                elif "state_" in self.__dict__:
                    self._engine = self._resumed(self.state_)
                    del self.state_
                else:
                    self._adopt(*self._begin())
        return self._engine

    def __sklearn_is_fitted__(self) -> bool:
        # In this order: a thread that resumes sets the one before it drops the other.
        return "state_" in self.__dict__ or "_engine" in self.__dict__

    # -- state ------------------------------------------------------------------------------------------------------

    def export_state(self) -> dict[str, Any]:
        """All that was learned, as plain data: numbers, arrays, strings, lists and dicts.

        Returns
        -------
        state : dict
            For `resume` of a classifier with the same parameters. `lacunar.persistence.save_model` stores parameters and state
            together; this is for side information that no file holds, such as a kernel that is a function.
        """
        learned = self._live().state()
        return {**learned, "classes": self.classes_, "settled": self.settled_, "seed": self.seed_}

    def resume(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `export_state` gave, to the bit as if there had been no break.

        Parameters
        ----------
        state : dict

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When it is the state of other side information, another number of thresholds or experts, or no state. The
            classifier is then as before.
        """
        model = self._resumed(state)
        thresholds = read_thresholds(self.thresholds)
        coding = Coding(np.asarray(state["classes"]), bool(state["settled"]), thresholds)
        sound = isinstance(state["seed"], int) and isinstance(state["settled"], bool | np.bool_)
        if thresholds is not None:
            sound &= np.array_equal(coding.classes, np.arange(len(thresholds) + 1))
        if not sound or coding.classes.shape != (max(coding.n_tasks, 1) + 1,):
            raise ValueError(
                f"the state must hold {coding.n_tasks + 1} classes and a seed; it does not. Save it again."
            )
        self.__dict__.pop("state_", None)
        self._adopt(model, coding, seed=state["seed"])
        return self

    def _resumed(self, state: Mapping[str, Any]) -> Model:
        self._validate_params()  # type: ignore[attr-defined]
        thresholds = read_thresholds(self.thresholds)
        n_tasks, experts = 1 if thresholds is None else len(thresholds), self._experts()
        try:
            engines = state["engines"]
            if len(engines) != n_tasks or any(len(task) != len(experts) for task in engines):
                raise ValueError(f"it is not of {n_tasks} thresholds and {len(experts)} experts")
            return Model(experts, n_tasks, tol=self.tol, state=state)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ValueError(
                f"the state must be of a classifier with these parameters and this side information; {error}. Resume it with "
                "those it was saved with, or fit again."
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        model = state.pop("_engine", None)
        if model is not None:
            state["state_"] = model.state()
        return state

    def _check_loaded(self) -> None:
        """A model file is refused here, not in use."""
        if "state_" in self.__dict__:
            kept = {"classes": self.classes_, "settled": self.settled_, "seed": self.seed_}
            self.resume(kept | self.state_)

    @property
    def _draws(self) -> bool:
        """Whether predictions are against a random threshold: as printed, unless updates are conservative."""
        return not self.conservative if self.options == "paper" else self.randomized

    # -- counts -----------------------------------------------------------------------------------------------------

    @property
    def n_seen_(self) -> int:
        """Pairs learned so far."""
        return self._live().n_seen if self.__sklearn_is_fitted__() else 0

    @property
    def n_updates_(self) -> int:
        """Pairs that changed the learner."""
        return self._live().n_updates if self.__sklearn_is_fitted__() else 0

    @property
    def n_mistakes_(self) -> int:
        """Pairs predicted wrongly before they were learned."""
        return self._live().n_mistakes if self.__sklearn_is_fitted__() else 0

    @property
    def expert_weights_(self) -> NDArray[np.float64]:
        """Weights of the experts, shape (L, E)."""
        return np.array([hedge.weights for hedge in self._live().hedges])


class Options:
    """Parameters of a classifier with side information filled in: what a learner reads.

    As printed, what has no place in the paper gives way to the theorem's value: the step of any time and the neutral D.
    """

    def __init__(self, given: Any, none: SideInformation) -> None:
        self._given = given
        paper = given.options == "paper"
        self.step = "theory" if paper and given.step in ("anytime", "fixed") else given.step
        self.d = "theory" if paper and given.d == "neutral" else given.d
        self.rows: SideInformation = none if given.rows is None else given.rows
        self.cols: SideInformation = none if given.cols is None else given.cols

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)
