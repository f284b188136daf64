"""The compiled core. Private: arguments are trusted to have passed `lacunar.observed.door`."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Float: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

__version__: str

LOSSES: dict[str, frozenset[str]]

def loss_values(
    loss: str, value: NDArray[np.float64], target: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]: ...
def build_info() -> dict[str, str | int]: ...
def isa_of(leaf1_ecx: int, leaf7_ebx: int, leaf7_ecx: int, extended_ecx: int, xcr0: int) -> str: ...
def find_fault(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: _Float, n_cols: int
) -> tuple[str, int, int] | None: ...
def dense_entries(
    cells: _Float,
    single: bool,
    center: NDArray[np.float64] | None,
    scale: NDArray[np.float64] | None,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], _Float] | None: ...
def column_entries(
    columns: list[NDArray[np.float64]],
    valid: list[tuple[NDArray[np.uint8], int] | None],
    n_rows: int,
    single: bool,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], _Float] | None: ...
def triplet_entries(
    row: NDArray[np.int32] | NDArray[np.int64],
    col: NDArray[np.int32] | NDArray[np.int64],
    value: _Float,
    n_rows: int,
    n_cols: int,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], _Float, bool] | None: ...
def merge_repeated(indptr: NDArray[np.int64], indices: NDArray[np.int32], values: _Float, mean: bool) -> int: ...
def encode_block(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: _Float, n_cols: int, precision: int
) -> tuple[NDArray[np.uint8], float, float]: ...
def decode_block(
    data: NDArray[np.uint8], n_cols: int, indptr: NDArray[np.int64], indices: NDArray[np.int32], values: _Float
) -> None: ...
def column_moments(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    weight: NDArray[np.float64],
    n_cols: int,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def column_pair_sums(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    shift: NDArray[np.float64],
    product: NDArray[np.float64],
    count: NDArray[np.int64] | None,
    cross: NDArray[np.float64] | None,
    stripe: int,
    n_threads: int,
) -> None: ...
def column_pair_sums_by_column(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    column_offsets: NDArray[np.int64],
    column_rows: NDArray[np.int64],
    positions: NDArray[np.int64],
    shift: NDArray[np.float64],
    product: NDArray[np.float64],
    count: NDArray[np.int64] | None,
    cross: NDArray[np.float64] | None,
    n_threads: int,
) -> None: ...
def column_pair_counts(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    place: NDArray[np.int32] | None,
    count: NDArray[np.int64],
    n_cols: int,
    n_threads: int,
) -> None: ...
def mirror_upper(table: NDArray[np.float64] | NDArray[np.int64], n_threads: int) -> None: ...
def column_gram_product(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    v: NDArray[np.float64],
    n_threads: int,
) -> NDArray[np.float64]: ...
def row_product(a: _Float, b: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]: ...
def draw_nearest(
    ascending: NDArray[np.float64],
    order: NDArray[np.int64],
    sample: NDArray[np.int64],
    targets: NDArray[np.float64],
    uniform: NDArray[np.float64],
    k: int,
    reach: float,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]: ...
def symmetric_tree(
    codes: NDArray[np.uint8],
    n_codes: NDArray[np.int32],
    categorical: NDArray[np.uint8],
    pairs: NDArray[np.float64],
    penalty: float,
    depth: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def selected_inverse(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    pivots: NDArray[np.float64],
    tail: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def factor_solve(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    pivots: NDArray[np.float64],
    place: NDArray[np.int32],
    right: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def factor_sums(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    model: NDArray[np.float64],
    k: int,
    noise: float,
    sums: NDArray[np.float64],
    moment: NDArray[np.float64],
    n_threads: int,
) -> int: ...
def standardise(
    values: _Float,
    columns: NDArray[np.int32],
    center: NDArray[np.float64],
    scale: NDArray[np.float64],
    bound: float,
    out: NDArray[Any],
    n_threads: int,
) -> bool: ...
def column_view(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], n_cols: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def karma_gram(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_values: _Float,
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    y_values: _Float,
    n_cols: int,
    symmetric: bool,
    forms: _Float,
    tables: _Float,
    row_scale: _Float | None,
    col_scale: _Float | None,
    out: _Float,
    method: str,
    n_threads: int,
) -> str: ...
def dual_ascend(
    gram: NDArray[np.float32],
    y: NDArray[np.float64],
    upper: NDArray[np.float64],
    loss: str,
    beta: NDArray[np.float64],
    gradient: NDArray[np.float64],
    logit: NDArray[np.float64],
    max_steps: int,
    tol: float,
) -> tuple[int, float, float, float, bool]: ...
def dual_ascend_multiclass(
    gram: NDArray[np.float32],
    label: NDArray[np.int64],
    upper: NDArray[np.float64],
    tau: NDArray[np.float64],
    score: NDArray[np.float64],
    max_steps: int,
    tol: float,
) -> tuple[int, float, float, float, bool]: ...

MEMORIES: int
MEMORY_EVERY: int
MEMORY_LINES: int
RLS_CLOCK: int
SCOUT_LINES: int
RLS_MOST_RANK: int
SHARED_SUMS: int

def shared_ridge(sums: NDArray[np.float64], d: int, otherwise: float) -> float: ...
def rls_pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    order: NDArray[np.int64],
    label: NDArray[np.float64] | None,
    options: dict[str, Any],
    state: dict[str, Any],
    prediction: NDArray[np.float64],
    residual: NDArray[np.float64],
) -> int: ...
def shared_pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    order: NDArray[np.int64],
    label: NDArray[np.float64] | None,
    options: dict[str, Any],
    state: dict[str, Any],
    prediction: NDArray[np.float64],
    residual: NDArray[np.float64],
) -> int: ...
def grouse_pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    order: NDArray[np.int64],
    options: dict[str, Any],
    state: dict[str, Any],
    prediction: NDArray[np.float64],
    residual: NDArray[np.float64],
) -> int: ...
def latent_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    basis: NDArray[np.float64],
    ridge: float,
    latent: NDArray[np.float64],
    residual: NDArray[np.float64] | None,
    inverse: NDArray[np.float64] | None,
    n_threads: int,
) -> int: ...
def rls_stride(d: int, single: bool) -> int: ...

# Dicts of fields: the kernel's map or the kernel, and the step rule; see src/core.
class Forest:
    def __init__(
        self,
        roots: NDArray[np.int32],
        outputs: NDArray[np.int32],
        feature: NDArray[np.int32],
        threshold: NDArray[np.float64],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        missing_left: NDArray[np.uint8],
        category_set: NDArray[np.int32],
        sets: NDArray[np.uint32],
        values: NDArray[np.float32],
        n_cols: int,
        n_outputs: int,
    ) -> None: ...
    def add(self, rows: NDArray[np.float64], out: NDArray[np.float64], n_threads: int) -> None: ...

class AlgorithmOne:
    def __init__(
        self,
        n_cols: int,
        outputs: int,
        map: dict[str, Any] | None,
        first: NDArray[Any] | None,
        second: NDArray[Any] | None,
        block: int,
        budget: int,
        kernel: dict[str, Any],
        single: bool,
    ) -> None: ...
    def learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[Any],
        scale: NDArray[np.float64] | None,
        target: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        curvature: NDArray[np.float64] | None,
        order: NDArray[np.int64],
        table: NDArray[Any] | None,
        rule: dict[str, Any],
        largest: float,
        decisions: NDArray[np.float64],
        n_threads: int,
    ) -> int: ...
    def decide(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[Any],
        scale: NDArray[np.float64] | None,
        table: NDArray[Any] | None,
        coef: NDArray[np.float64],
        decisions: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
    def coefficients(self, iterate: str) -> NDArray[np.float64]: ...
    def add_stored(self, first: NDArray[Any], second: NDArray[Any] | None) -> None: ...
    def clock(self) -> NDArray[np.float64]: ...
    def stored(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], NDArray[np.float64], NDArray[np.float64]]: ...
    def restore(
        self,
        clock: NDArray[np.float64],
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[Any],
        scale: NDArray[np.float64] | None,
        curvature: NDArray[np.float64] | None,
        first: NDArray[np.float64],
        second: NDArray[np.float64],
    ) -> None: ...

def primal_ascend(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    form: dict[str, Any],
    scale: NDArray[np.float64] | None,
    target: NDArray[np.float64],
    upper: NDArray[np.float64],
    curvature: NDArray[np.float64],
    order: NDArray[np.int64],
    loss: str,
    epsilon: float,
    table: NDArray[Any],
    beta: NDArray[np.float64],
    idle: NDArray[np.int32],
    sweep: int,
    gap: NDArray[np.float64],
    n_threads: int,
) -> int: ...
def primal_decide(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: _Float,
    form: dict[str, Any],
    row_scale: NDArray[np.float64] | None,
    table: NDArray[Any],
    decisions: NDArray[np.float64],
    n_threads: int,
    blocked: bool,
) -> None: ...
def primal_table_shape(form: dict[str, Any]) -> tuple[int, int, int]: ...
def coordinate_sums(
    beta: NDArray[np.float64],
    value: NDArray[np.float64],
    target: NDArray[np.float64],
    upper: NDArray[np.float64],
    loss: str,
    epsilon: float,
) -> NDArray[np.float64]: ...

class PairPool:
    def __init__(self, options: dict[str, Any], rows: dict[str, Any], cols: dict[str, Any]) -> None: ...
    def size(self, side: int) -> int: ...
    def grow(self, side: int, more: dict[str, Any]) -> None: ...
    def set_features(self, side: int, phi: NDArray[np.float64]) -> None: ...
    def run(
        self,
        i: NDArray[np.int32],
        j: NDArray[np.int32],
        y: NDArray[np.float64],
        extra: NDArray[np.float64],
        out: NDArray[np.float64],
        each: NDArray[np.float64] | None,
    ) -> None: ...
    def set_shared(self, rows: NDArray[np.int32], cols: NDArray[np.int32]) -> None: ...
    def ask(
        self,
        i: NDArray[np.int32],
        j: NDArray[np.int32],
        rows_mirrored: NDArray[np.int32],
        cols_mirrored: NDArray[np.int32],
        extra: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None: ...
    def ask_one(self, i: int, j: int, row_mirrored: int, col_mirrored: int, extra: list[float]) -> float: ...
    def learn_one(self, i: int, j: int, y: float, extra: list[float]) -> float: ...
    @property
    def n_seen(self) -> int: ...
    @property
    def mixture(self) -> float: ...
    def state(self, history: bool) -> dict[str, Any]: ...
    def set_state(self, kept: dict[str, Any]) -> None: ...
    def weights(self) -> list[float]: ...
    @property
    def hedged(self) -> int: ...

MEG_OK: int
MEG_NOT_FINITE: int
MEG_NOT_CONVERGED: int

class MegSide:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def vertices(self) -> int: ...
    @property
    def seats(self) -> NDArray[np.int32]: ...

class MegDense(MegSide):
    def __init__(self, kernel: NDArray[np.float64], vertices: int) -> None: ...
    def grow(self, kernel: NDArray[np.float64], vertices: int) -> None: ...

class MegFactor(MegSide):
    def __init__(self, phi: NDArray[np.float64], vertices: int, own: float, constant: float) -> None: ...
    def grow(self, phi: NDArray[np.float64], vertices: int) -> None: ...

class MegOperator(MegSide):
    def __init__(
        self, diagonal: NDArray[np.float64], apply: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> None: ...

class Meg:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @staticmethod
    def kernels(rows: MegSide, cols: MegSide, log_scale: float, tol: float) -> Meg: ...
    @staticmethod
    def features(
        rows: NDArray[np.float64], n_rows: int, cols: NDArray[np.float64], n_cols: int, log_scale: float, tol: float
    ) -> Meg: ...
    def value(self, i: int, j: int) -> tuple[int, float, bool, bool, int]: ...
    def decide(self, i: int, j: int, y: float, gamma: float, strict: bool) -> tuple[int, float, bool, bool, int]: ...
    def values(self, i: NDArray[np.int32], j: NDArray[np.int32], out: NDArray[np.float64]) -> tuple[int, int]: ...
    @property
    def n_seen(self) -> int: ...
    def learn(self, i: int, j: int, change: float, log_score: float) -> bool: ...
    def run(
        self,
        i: NDArray[np.int32],
        j: NDArray[np.int32],
        y: NDArray[np.float64],
        step: NDArray[np.float64],
        gamma: float,
        strict: bool,
        values: bool,
        out: NDArray[np.float64],
        updated: NDArray[np.uint8],
    ) -> tuple[int, int]: ...
    def grow_features(self, rows: NDArray[np.float64], n_rows: int, cols: NDArray[np.float64], n_cols: int) -> None: ...
    def cells(self) -> dict[str, Any]: ...
    def set_cells(
        self,
        row_seats: NDArray[np.int32],
        col_seats: NDArray[np.int32],
        row_sums: NDArray[np.float64],
        col_sums: NDArray[np.float64],
        cell_rows: NDArray[np.int32],
        cell_cols: NDArray[np.int32],
        cells: NDArray[np.float64],
        table: bool,
    ) -> None: ...
    def matrix(self) -> NDArray[np.float64]: ...
    def set_matrix(self, matrix: NDArray[np.float64]) -> None: ...
    def clock(self) -> dict[str, float]: ...
    def set_clock(self, updates: float, bound: float, trace: float) -> None: ...
