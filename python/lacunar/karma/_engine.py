"""The estimator's side of the engines: which one, with what step, and its state as fitted attributes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._random import fixed_seed, generator
from lacunar._snapshot import SavePoint
from lacunar._threads import thread_count
from lacunar.karma._auto import Shape, choose_solver, gram_bytes
from lacunar.karma._base import KarmaBase
from lacunar.karma._map import has_map
from lacunar.karma._online import OnlineModel
from lacunar.karma._primal import PrimalModel
from lacunar.karma._solve import warn_if_unfinished
from lacunar.observed import Observed
from lacunar.observed.rules import COUNT, Array, Rule, Word

_Floats = NDArray[np.float64]
Engine = PrimalModel | OnlineModel
_STREAM_STRENGTH = 1e-4  # rho * C of partial_fit, where the number of rows is not known
_FINE_TOL = 1e-4  # a float32 table stalls at relative gaps of 1e-6 to 1e-5


class EngineFits(KarmaBase):
    """Fits by Algorithm 1 or dual coordinate ascent; `state_` holds all that the engine needs to go on."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaBase._parameter_constraints,
        "solver": [StrOptions({"auto", "gram", "primal", "online"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "passes": [Interval(Integral, 1, None, closed="left"), None],
        "rho": [Interval(Real, 0, None, closed="neither"), None],
        "eta": [StrOptions({"theory", "constant", "invscaling"})],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "iterate": [StrOptions({"weighted", "average", "last"})],
        "block_size": [Interval(Integral, 1, None, closed="left")],
        "max_support": [Interval(Integral, 1, None, closed="left"), None],
        "budget": [StrOptions({"remove", "project"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _held: ClassVar[dict[str, Rule]] = {
        **KarmaBase._held,
        "solver_": Word(("gram", "primal", "online")),
        "n_rows_seen_": COUNT,
        "n_support_": Array("i", ("c",), low=0),
    }
    C: float
    loss: str
    solver: str
    tol: float
    max_iter: int
    passes: int | None
    rho: float | None
    eta: Any
    eta0: float
    power_t: float
    iterate: Any
    block_size: int
    max_support: int | None
    budget: Any
    memory_limit: float
    dtype: str
    random_state: Any
    verbose: int

    def _own_loss(self) -> str:
        """The loss of the engines and of `fit`; classifiers have the paper's own."""
        return self.loss

    def _fit_loss(self) -> str:
        """The loss of `fit`."""
        return self._own_loss()

    def _own_iterate(self) -> Any:
        return "average" if self.options == "paper" else self.iterate

    def _choose_solver(self, X: Observed, n_outputs: int) -> str:
        """The solver of `fit`, refused where it cannot be."""
        loss = self._own_loss()
        wide_only = loss in ("absolute", "epsilon_insensitive")
        if self.solver != "auto":
            self._refuse_solver(self.solver, wide_only)
            return self.solver
        if loss == "crammer_singer":
            return "gram"
        if self.options == "paper":
            return "online"
        if wide_only:
            return "primal" if has_map(self.kernel_) else "online"
        mean = X.nnz / max(X.shape[0], 1)
        shape = Shape(*X.shape, mean, n_outputs, loss == "squared")
        return choose_solver(self.kernel_, shape, int(self.memory_limit))

    def _refuse_solver(self, solver: str, wide_only: bool = False) -> None:
        if solver != "gram" and self.loss == "crammer_singer":
            raise ValueError(
                f"loss='crammer_singer' is solved over a Gram only; got solver={solver!r}. Use solver='gram', or "
                "loss='hinge' (one class against the rest)."
            )
        if solver == "gram" and wide_only:
            raise ValueError(
                f"solver='gram' must have loss='squared' in a regressor; got loss={self.loss!r}. Use solver='primal' "
                "(gamma 1, 2 or 3) or solver='online'."
            )
        if solver == "primal" and not has_map(self.kernel_):
            raise ValueError(
                "solver='primal' must have gamma 1, 2 or 3 and degree 1, whose features fit in a table; got "
                f"gamma={self.gamma:g}, degree={self.degree}. Use solver='gram' (to some ten thousand rows), "
                "solver='online' (any number), or gamma=3 and degree=1."
            )

    def _fit_gram(self, rows: Observed) -> NDArray[Any]:
        """Gram (n, n), or the advice to use another solver where memory does not hold it."""
        try:
            return self._gram(rows)
        except MemoryError as error:
            raise MemoryError(
                f"solver='gram' must hold {gram_bytes(rows.shape[0]):.3g} bytes for {rows.shape[0]} rows, and memory does "
                "not. Use solver='primal' (gamma 1, 2 or 3) or solver='online'."
            ) from error

    # -- engines --------------------------------------------------------------------------------------------------

    def _make_engine(self, solver: str, n_outputs: int, rho: float, dtype: Any, *, iterate: str) -> Engine:
        n_features = len(self.center_)
        paper = self.options == "paper"
        shared: dict[str, Any] = {
            "loss": self._own_loss(),
            "rho": rho,
            "eta": "printed" if paper else self.eta,
            "eta0": self.eta0,
            "dtype": dtype,
        }
        shared |= {"power_t": self.power_t, "epsilon": getattr(self, "epsilon", 0.1), "iterate": iterate}
        if solver == "primal":
            return PrimalModel(self.kernel_, n_features, n_outputs, memory_limit=int(self.memory_limit), **shared)
        options: dict[str, Any] = {"max_support": self.max_support, "budget": self.budget, "block": self.block_size}
        return OnlineModel(self.kernel_, n_features, n_outputs, **options, **shared)

    def _own_dtype(self, *, exact: bool) -> str:
        if self.dtype != "auto":
            return self.dtype
        if self.options == "paper":
            return "float64"
        fine = exact and (self.tol < _FINE_TOL or self.loss == "squared")
        return "float64" if fine else "float32"

    def _fit_engine(self, solver: str, rows: Observed, targets: _Floats, weight: _Floats, point: SavePoint) -> None:
        """Fit all rows; an interrupt leaves the model of the last full block."""
        exact = solver == "primal" and self.passes is None and self.options != "paper"
        rho = self.rho or 1 / (self.C * len(targets))
        dtype = self._own_dtype(exact=exact)
        engine = self._make_engine(
            solver, targets.shape[1], rho, dtype, iterate="last" if exact else self._own_iterate()
        )
        self._adopt_engine(engine)
        point.keeps_interrupted = True
        try:
            if exact:
                self._ascend(engine, rows, targets, weight)
            else:
                self._pass_over(engine, rows, targets, weight)
        finally:
            self._adopt_engine(engine)

    def _ascend(self, engine: Any, rows: Observed, targets: _Floats, weight: _Floats) -> None:
        def report(sweep: int, gap: float) -> None:
            self.n_iter_ = sweep
            if self.verbose:
                print(f"[primal] sweep {sweep}: duality gap met {gap:.3g}", flush=True)

        result = engine.ascend(
            rows,
            targets,
            self.C * weight,
            tol=self.tol,
            max_iter=self.max_iter,
            rng=generator(fixed_seed(self.random_state)),
            n_threads=thread_count(self.n_jobs),
            progress=report,
        )
        self.n_iter_, self.gap_ = int(result.n_iter), float(result.gap)
        warn_if_unfinished([result], self._own_loss(), self.tol)

    def _pass_over(self, engine: Engine, rows: Observed, targets: _Floats, weight: _Floats) -> None:
        rng = generator(fixed_seed(self.random_state))
        self.n_iter_ = 0
        for number in range(1, (self.passes or 1) + 1):
            order = np.arange(len(targets)) if self.options == "paper" else rng.permutation(len(targets))
            engine.partial_fit(rows, targets, weight, order=order, n_threads=thread_count(self.n_jobs))
            self.n_iter_ = number
            if self.verbose:
                print(f"[{self.solver_}] pass {number}: {engine.t} rows", flush=True)

    # -- state ----------------------------------------------------------------------------------------------------

    def _adopt_engine(self, engine: Engine) -> None:
        self.state_ = engine.state()
        self.n_rows_seen_ = engine.t
        self._engine = engine

    def _begin_at_gram(self) -> Engine:
        """An engine that goes on from the solution over the Gram, which counts as the mean of the iterates of its rows."""
        rows, coef = self.support_rows_, self.dual_coef_
        # A model file of version 0.1.0 has no number of rows; those kept are all of them but for the hinges and the weights of 0.
        n_rows = getattr(self, "n_rows_seen_", max(len(coef), 1))
        dtype = self.dtype if self.dtype != "auto" else rows.dtype
        rho = self.rho or 1 / (self.C * n_rows)
        engine = self._make_engine("online", coef.shape[1], rho, dtype, iterate=self._own_iterate())
        assert isinstance(engine, OnlineModel)
        engine.begin_at(rows, coef, n_rows)
        self._forget()
        self.solver_ = "online"
        return engine

    def _live_engine(self) -> Engine:
        """The engine at work, or a new one from `state_` after loading."""
        engine: Engine | None = self.__dict__.get("_engine")
        if engine is None:
            state = self.state_
            if state.get("n_features") != len(self.center_) or state.get("form") != self.kernel_:
                raise ValueError("state_ is of another table or kernel than center_ and kernel_; fit the model again.")
            engine = (PrimalModel if self.solver_ == "primal" else OnlineModel).from_state(state)
        return engine

    def _check_loaded(self) -> None:
        """Stored rows and engines of as many outputs as there are classes, or targets."""
        if "kernel_" not in vars(self):
            return
        outputs = self._n_outputs()
        if "state_" in vars(self) and self._live_engine().n_outputs != outputs:
            raise ValueError(f"state_ must have {outputs} outputs; got {self._live_engine().n_outputs}. Fit again")
        if "dual_coef_" in vars(self) and self.dual_coef_.shape[1] != outputs:
            raise ValueError(f"dual_coef_ must have {outputs} outputs; got {self.dual_coef_.shape[1]}. Fit again")

    def _n_outputs(self) -> int:
        raise NotImplementedError

    def _expansion(self, rows: Observed) -> _Floats:
        if not hasattr(self, "state_"):
            return super()._expansion(rows)
        return self._live_engine().decide(rows, n_threads=thread_count(self.n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_engine"}

    def _forget(self) -> None:
        """Drop what an earlier fit by another solver left behind."""
        old = ("state_", "_engine", "gap_", "n_rows_seen_", "n_iter_", "support_", "support_rows_", "dual_coef_")
        for name in (*old, "n_support_"):
            self.__dict__.pop(name, None)

    def _stream_solver(self) -> str:
        """The engine of a stream: the table where the kernel has one, else stored rows."""
        solver = self.solver if self.solver != "auto" else ("primal" if has_map(self.kernel_) else "online")
        self._refuse_solver(solver)
        return solver

    def _stream_rho(self) -> float:
        return self.rho or _STREAM_STRENGTH / self.C
