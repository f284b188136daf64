"""What the compiled core refuses, so that no file, view or thread makes it touch memory that is not its own."""

import threading

import numpy as np
import pytest

from lacunar import Observed, _core
from lacunar.kernels import karma_kernel


def ints(values):
    return np.ascontiguousarray(values, dtype=np.int32)


def offsets(values):
    return np.ascontiguousarray(values, dtype=np.int64)


def dense_engine(n=4):
    return _core.Meg.kernels(_core.MegDense(np.eye(n), n), _core.MegDense(np.eye(n), n), 0.0, 1e-10)


def misaligned(array):
    raw = np.zeros(array.nbytes + 3, np.uint8)
    view = raw[3:].view(array.dtype)
    view[:] = array
    assert view.flags.c_contiguous
    assert not view.flags.aligned
    return view


# -- the engine of completion -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [[0, 0], [0, 4], [0, -1]], ids=["repeated", "beyond", "negative"])
@pytest.mark.parametrize("side", [0, 1])
def test_seats_name_every_vertex_once_at_most(seats, side):
    engine, wrong, right = dense_engine(), ints(seats), ints([0, 1])
    both = (wrong, right) if side == 0 else (right, wrong)
    with pytest.raises(ValueError, match="every vertex once"):
        engine.set_cells(*both, np.ones(2), np.ones(2), ints([1]), ints([1]), np.ones(1), True)
    assert all(len(engine.cells()[name]) == 0 for name in ("row_seats", "col_seats", "row_sums", "cells"))


def test_a_state_replaces_what_was_learned():
    engine, taught = dense_engine(), dense_engine()
    for i, j in [(2, 1), (0, 3)]:
        assert taught.learn(i, j, 0.5, np.nan)
    state = taught.cells()
    assert engine.learn(2, 1, 7.0, np.nan)
    engine.set_cells(**state)
    for name, kept in engine.cells().items():
        np.testing.assert_array_equal(kept, state[name], err_msg=name)
    assert engine.value(2, 3) == taught.value(2, 3)
    with pytest.raises(ValueError, match="those with seats first"):
        engine.set_cells(ints([0]), ints([1]), np.ones(1), np.ones(1), ints([]), ints([]), np.ones(0), True)
    assert engine.value(2, 3) == taught.value(2, 3)


@pytest.mark.parametrize("cell", [-1, 1])
def test_cells_lie_in_seats(cell):
    with pytest.raises(ValueError, match="cell_cols must hold numbers from 0 to 0"):
        dense_engine().set_cells(ints([0]), ints([0]), *np.ones((2, 1)), ints([0]), ints([cell]), np.ones(1), True)


@pytest.mark.parametrize(
    "make", [_core.MegDense, lambda K, n: _core.MegFactor(K, n, 0.0, 0.0)], ids=["dense", "factor"]
)
def test_sides_lose_no_vertex(make):
    side = make(np.eye(4), 4)
    with pytest.raises(ValueError, match="loses none"):
        side.grow(np.eye(4), 3)
    assert side.vertices == 4


def test_features_keep_their_columns():
    side = _core.MegFactor(np.ones((4, 3)), 4, 0.0, 0.0)
    engine = _core.Meg.features(np.ones((4, 3)), 4, np.ones((4, 3)), 4, 0.0, 1e-10)
    with pytest.raises(ValueError, match="keep their columns"):
        side.grow(np.ones((5, 2)), 5)
    with pytest.raises(ValueError, match="keep their columns"):
        engine.grow_features(np.ones((5, 2)), 5, np.ones((4, 3)), 4)
    with pytest.raises(ValueError, match="lose no row"):
        engine.grow_features(np.ones((3, 3)), 3, np.ones((4, 3)), 4)


def test_an_engine_has_sides_of_its_own():
    side, other = (_core.MegDense(np.eye(4), 4) for _ in range(2))
    _core.Meg.kernels(side, other, 0.0, 1e-10)
    with pytest.raises(ValueError, match="sides of its own"):
        _core.Meg.kernels(side, _core.MegDense(np.eye(4), 4), 0.0, 1e-10)
    alone = _core.MegDense(np.eye(4), 4)
    with pytest.raises(ValueError, match="sides of its own"):
        _core.Meg.kernels(alone, alone, 0.0, 1e-10)


def test_pairs_are_those_of_the_sides_as_they_are():
    rows = _core.MegDense(np.eye(5), 4)
    engine = _core.Meg.kernels(rows, _core.MegDense(np.eye(4), 4), 0.0, 1e-10)
    with pytest.raises(IndexError, match="no such pair"):
        engine.value(4, 0)
    rows.grow(np.eye(5), 5)
    assert engine.value(4, 0)[0] == _core.MEG_OK


@pytest.mark.parametrize("kind", ["value", "column", "seats"])
def test_a_product_that_asks_its_own_engine_is_an_error(kind):
    """It would wait for itself for ever."""
    n, engine = 6, None
    calls = {"value": lambda: engine.value(0, 1), "column": lambda: engine.cells(), "seats": lambda: side.seats}

    def apply(x):
        if engine is not None:
            calls[kind]()
        return x.copy()

    side = _core.MegOperator(np.ones(n), apply)
    engine = _core.Meg.kernels(side, _core.MegDense(np.eye(n), n), 0.0, 1e-10)
    found = []

    def ask():
        try:
            engine.value(0, 0)
        except RuntimeError as error:
            found.append(str(error))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(60)
    assert len(found) == 1
    assert "asked the very engine that called it" in found[0]
    calls["value"] = calls["column"] = calls["seats"] = lambda: None
    assert engine.value(0, 0)[0] == _core.MEG_OK  # and the engine goes on


def test_a_product_may_ask_another_engine():
    other = dense_engine()
    side = _core.MegOperator(np.ones(4), lambda x: x * (1 + 0 * other.value(0, 0)[1]))
    engine = _core.Meg.kernels(side, _core.MegDense(np.eye(4), 4), 0.0, 1e-10)
    assert engine.value(0, 0) == dense_engine().value(0, 0)


# -- memory that others can write to, or that is not aligned ----------------------------------------------------------


def entries(n, column):
    return np.arange(n + 1), column, np.ones(n), (n, 1)


@pytest.mark.parametrize("part", ["indptr", "indices", "values"])
@pytest.mark.parametrize("how", ["base", "earlier view", "flag turned back", "array interface"])
def test_what_anyone_could_write_to_is_copied(part, how):
    n = 50
    arrays = {"indptr": offsets(range(n + 1)), "indices": ints(np.zeros(n)), "values": np.ones(n)}
    own = arrays[part]
    writable, given = own, own.view()
    if how == "earlier view":
        writable, given = own.view(), own
    if how == "array interface":

        class Holder:
            __array_interface__ = own.__array_interface__

        given = np.asarray(Holder())
    given.flags.writeable = False
    table = Observed(**{**arrays, part: given}, shape=(n, 1))
    if how == "flag turned back":
        own.flags.writeable = True
    assert not np.shares_memory(own, getattr(table, part))
    writable[:] = 2_000_000_000
    assert karma_kernel(table, gamma=2).sum() == 2 * n * n


def test_mapped_and_frozen_memory_is_shared(tmp_path):
    np.ones(50).tofile(tmp_path / "values")
    mapped = np.memmap(tmp_path / "values", mode="r")
    for buffer in (mapped, np.ones(50).tobytes()):
        values = np.frombuffer(buffer)
        table = Observed(*entries(50, ints(np.zeros(50)))[:2], values, (50, 1))
        assert np.shares_memory(values, table.values)
    changed = table.with_values(np.full(50, 2.0))
    assert np.shares_memory(changed.indices, table.indices)
    assert np.shares_memory(changed.indptr, table.indptr)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_misaligned_entries_are_copied(part):
    arrays = [offsets(range(51)), ints(np.zeros(50)), np.ones(50)]
    arrays[part] = misaligned(arrays[part])
    arrays[part].flags.writeable = False
    table = Observed(*arrays, (50, 1))
    assert all(array.flags.aligned for array in (table.indptr, table.indices, table.values))
    assert karma_kernel(table, gamma=2).sum() == 2 * 50 * 50


def test_the_core_refuses_misaligned_arrays():
    with pytest.raises(ValueError, match="aligned"):
        _core.MegDense(misaligned(np.ones(4)).reshape(2, 2), 2)


# -- shapes, ranges and products of sizes -----------------------------------------------------------------------------

ROWS = (offsets([0, 2, 3]), ints([0, 1, 1]), np.ones(3))


@pytest.mark.parametrize("indptr", [[0, 2, 4], [-1, 2, 3], [0, 3, 2], []], ids=["beyond", "before", "falling", "empty"])
def test_rows_lie_within_their_entries(indptr):
    with pytest.raises(ValueError, match="indptr"):
        _core.column_moments(offsets(indptr), *ROWS[1:], np.ones(2), 2, 1)
    with pytest.raises(ValueError, match="indptr"):
        _core.column_view(offsets(indptr), ROWS[1], 2)


FEATURES = {"gamma": 2, "n_cols": 2, "constant": 0.0, "indicator": 0.0, "weight": (1.0, 1.0, 1.0), "hash_bits": 0}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"gamma": "two"}, TypeError, "gamma has another type"),
        ({"weight": (1.0, 1.0)}, TypeError, "weight has another type"),
        (None, KeyError, "the options lack weight"),
    ],
)
def test_options_are_all_there_and_of_their_types(change, error, message):
    with pytest.raises(error, match=message):
        _core.primal_table_shape({} if change is None else FEATURES | change)


def one_step(**change):
    arrays = {"scale": None, "target": np.ones(2), "weight": None, "curvature": None, "order": offsets([1])}
    rule = {"loss": "hinge", "epsilon": 0.1, "rho": 1.0, "eta": "theory", "eta0": 0.1, "iterate": "last"}
    rule |= {name: change.pop(name) for name in ("loss", "eta", "iterate") if name in change}
    kernel = {"on_sum": 1.0, "on_count": 0.0, "constant": 0.0, "degree": 1, "coef0": 0.0, "shrink": 1.0}
    made = {"map": FEATURES, "first": np.zeros(_core.primal_table_shape(FEATURES)[2]), "second": None, "block": 0}
    made |= {name: change.pop(name) for name in made if name in change}
    model = _core.AlgorithmOne(2, 1, **made, budget=0, kernel=kernel, single=False)
    options = {"table": None, "rule": rule, "largest": 1.0, "decisions": np.zeros(2), "n_threads": 1}
    return model.learn(*ROWS, **(arrays | options | change))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"order": offsets([2])}, ValueError, "order must hold numbers from 0 to 1"),
        ({"target": np.ones(3)}, ValueError, "target has 3 elements, not 2"),
        ({"target": np.ones((2, 0))}, ValueError, "no outputs"),
        ({"target": np.ones((2, 2))}, ValueError, "another number of outputs"),
        ({"target": np.ones(2, np.float32)}, TypeError, "incompatible"),
        ({"target": np.ones((2, 2)).T}, TypeError, "incompatible"),
        ({"target": misaligned(np.ones(2))}, ValueError, "aligned"),
        ({"weight": np.ones(1)}, ValueError, "weight has 1 elements, not 2"),
        ({"scale": np.ones(1)}, ValueError, "scale has 1 elements, not 2"),
        ({"decisions": np.ones(1)}, ValueError, "decisions has 1 elements, not 2"),
        ({"loss": "squared_hinge"}, ValueError, "curvature of the rows is needed"),
        ({"loss": "cubic"}, ValueError, "unknown loss cubic"),
        ({"eta": "slow"}, ValueError, "unknown eta slow"),
        ({"iterate": "first"}, ValueError, "unknown iterate first"),
        ({"first": None}, ValueError, "a map needs its table"),
        ({"first": np.ones(3)}, ValueError, "first has 3 elements"),
        ({"second": np.ones(3)}, ValueError, "second has 3 elements"),
        ({"map": FEATURES | {"n_cols": 3}}, ValueError, "another number of columns"),
        ({"map": FEATURES | {"hash_bits": 5}, "block": 4}, ValueError, "a whole table"),
        ({"block": -1}, ValueError, "block must be at least 1"),
        ({"map": None, "first": None}, ValueError, "block must be at least 1"),
        ({"map": None, "first": None, "block": 4}, ValueError, "the table of the kernel"),
        ({"map": None, "first": None, "block": 4, "table": np.ones(2)}, ValueError, "the table of the kernel"),
    ],
)
def test_training_sets_fit_their_rows(change, error, message):
    assert one_step() == -1
    assert one_step(map=None, first=None, block=4, table=np.ones(3)) == -1
    with pytest.raises(error, match=message):
        one_step(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock": np.ones(3)}, "clock has 3 elements, not 4"),
        ({"first": np.ones(3)}, "first has 3 elements, not 2"),
        ({"second": np.ones((1, 2))[:, :1].copy()}, "second has 1 elements, not 2"),
        ({"scale": np.ones(1)}, "scale has 1 elements, not 2"),
        ({"indptr": offsets([0, 2, 5])}, "indptr"),
        ({"curvature": None}, "a budget needs the curvature"),
    ],
)
def test_restored_rows_fit_their_coefficients(change, message):
    kernel = {"on_sum": 1.0, "on_count": 0.0, "constant": 0.0, "degree": 1, "coef0": 0.0, "shrink": 1.0}
    model = _core.AlgorithmOne(2, 1, None, None, None, block=4, budget=1, kernel=kernel, single=False)
    rows = dict(zip(("indptr", "indices", "values"), ROWS, strict=True))
    sound = rows | {"clock": np.array([1.0, 1, 0, 0]), "scale": None, "curvature": np.ones(2)}
    sound |= {"first": np.ones((2, 1)), "second": np.ones((2, 1))}
    model.restore(**sound)
    with pytest.raises(ValueError, match=message):
        model.restore(**(sound | change))


def test_products_of_sizes_do_not_wrap():
    none = offsets([0]), ints([]), np.ones(0)
    with pytest.raises(ValueError, match="product must fit 64 bits"):
        _core.mirror_upper(np.empty((2**32, 0)), 1)  # 2^64 elements, which are 0 in 64 bits
    with pytest.raises(ValueError, match="31 bits"):
        _core.column_pair_counts(*none, None, np.zeros(0, np.int64), 2**32, 1)
    with pytest.raises(ValueError, match="31 bits"):
        _core.primal_table_shape(FEATURES | {"gamma": 3, "n_cols": 2**40})
    with pytest.raises(ValueError, match="at most 32768"):
        _core.factor_sums(*none, np.ones((1, 1)), 2**31 - 1, 0.1, np.ones(1), np.ones(1), 1)


def gram(tables, symmetric=False, other=ROWS, out=None):
    made = np.empty((1, 2, len(other[0]) - 1)) if out is None else out
    forms = np.array([[1.0, 0.0, 0.0]])
    return _core.karma_gram(*ROWS, *other, 2, symmetric, forms, tables, None, None, made, "spmm", 1)


def test_tables_of_a_kernel_reach_to_the_longest_row():
    gram(np.ones((1, 3)))
    with pytest.raises(ValueError, match="longest row"):
        gram(np.ones((1, 2)))
    with pytest.raises(ValueError, match="rows are not the same"):
        gram(np.ones((1, 3)), symmetric=True, other=(offsets([0, 1]), ints([0]), np.ones(1)))


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_are_columns_of_tau(label):
    tau = np.zeros((2, 2))
    with pytest.raises(ValueError, match="label must hold numbers from 0 to 1"):
        _core.dual_ascend_multiclass(
            np.eye(2, dtype=np.float32), offsets([0, label]), np.ones(2), tau, tau.copy(), 5, 1e-3
        )


@pytest.mark.parametrize("row", [-1, 2])
def test_orders_name_rows_that_are_there(row):
    state = {
        "v": np.ones((2, 1)),
        "t": np.ones((1, 1)),
        "t_inverse": np.ones((1, 1)),
        "clock": np.zeros(_core.RLS_CLOCK),
    }
    order, options = offsets([0, row]), {"damping": 1.0, "ridge": 0.1}
    with pytest.raises(ValueError, match="order must hold numbers from 0 to 1"):
        _core.grouse_pass(*ROWS, order, options, state, np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("tail", [[0, 0], [2, 2], [0, 1]], ids=["diagonal", "beyond", "sound"])
def test_factors_are_lower_triangles(tail):
    lower = offsets([0, 1, 2, 2]), ints([1, tail[1] + 1 if tail[1] else 0]), np.ones(2)
    call = _core.selected_inverse, (*lower, np.ones(3), np.empty((0, 0)))
    solve = _core.factor_solve, (*lower, np.ones(3), ints([0, 1, 2]), np.ones((3, 1)))
    for function, arguments in (call, solve):
        if tail == [0, 1]:
            assert np.isfinite(function(*arguments)).all()
        else:
            with pytest.raises(ValueError, match="ascend below its diagonal"):
                function(*arguments)


def test_places_of_a_factor_are_rows():
    lower = offsets([0, 0, 0]), ints([]), np.ones(0)
    with pytest.raises(ValueError, match="place must hold numbers from 0 to 1"):
        _core.factor_solve(*lower, np.ones(2), ints([0, 2]), np.ones((2, 1)))
