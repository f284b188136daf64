"""Model files whose parts contradict each other are refused before the core reads any of them."""

import warnings
from random import Random

import numpy as np
import pytest
from fuzz import archives, models, structure
from sklearn.base import clone

from lacunar import KarmaClassifier, KarmaOnlineClassifier, LacunarClassifier, Observed
from lacunar.karma.solvers import PrimalModel
from lacunar.kernels import KernelForm
from lacunar.lowrank import PETRELS
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.rules import Array, Number, OneOrMany, check_parts, floats, whole
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.papers.karma import MatrixCompletionClassifier
from lacunar.persistence import load_model, save_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
LABELS = np.where(X[:, 0] > 0, "ja", "nein")
X[RNG.random(X.shape) < 0.3] = np.nan


def named(content):
    """Arrays of a model by the last name on the way to them, and its stored tables."""
    arrays, tables = {}, []

    def walk(node, name):
        if isinstance(node, dict):
            if node.get("t") == "array":
                arrays[name] = node["name"]
            if node.get("t") == "observed":
                tables.append(node)
            for key, child in node.items():
                walk(child, name if key in ("items", "fields") else key)
        elif isinstance(node, list):
            pair = len(node) == 2 and isinstance(node[0], str)
            for child in node:
                walk(child, node[0] if pair else name)

    walk(content["model"], "")
    return arrays, tables


def forged(model, path, change):
    """The file of a model after change(arrays by name, names, stored tables, content)."""
    save_model(model, path)
    content, arrays = read_archive(path, kind="model")
    names, tables = named(content)
    arrays = dict(arrays)
    change(arrays, names, tables, content)
    write_archive(path, kind="model", header=content, arrays=arrays)
    return path


def test_seats_that_repeat_a_vertex_are_refused(tmp_path):
    """All of them took one seat, and their sums were written behind it."""
    pairs = RNG.integers(6, size=(2, 30))
    model = MatrixExponentiatedGradient().partial_fit(*pairs.tolist(), RNG.choice([-1, 1], 30))

    def repeat(arrays, names, tables, content):
        n = 200_000
        for side in ("row", "col"):
            arrays[names[f"{side}_seats"]] = np.zeros(n, np.int32)
            arrays[names[f"{side}_sums"]] = np.ones(n)
            arrays[names[f"cell_{side}s"]] = np.array([n - 1], np.int32)
        arrays[names["cells"]] = np.ones(1)

    with pytest.raises(ValueError, match=r"row_seats.*without repeats"):
        load_model(forged(model, tmp_path / "m", repeat))


@pytest.mark.parametrize("learner", [KarmaOnlineClassifier(2.5, max_iter=2), KarmaClassifier(2.5)], ids=repr)
def test_stored_rows_of_other_columns_are_refused(tmp_path, learner):
    model = clone(learner).fit(X, LABELS)

    def widen(arrays, names, tables, content):
        for node in tables:
            node["shape"][1] = 2_000_000_000
            made, ends = np.array(arrays[node["indices"]]), arrays[node["indptr"]]
            made[ends[1:][np.diff(ends) > 0] - 1] = 1_999_999_999
            arrays[node["indices"]] = made

    with pytest.raises(ValueError, match=r"must be of shape \(\d+, 5\); got shape \(\d+, 2000000000\)"):
        load_model(forged(model, tmp_path / "m", widen))


def test_pending_rows_of_other_columns_are_refused():
    d = 3000
    cells = np.full((100, d), np.nan)
    cells[:, :20] = RNG.normal(size=(100, 20))
    rows, y = Observed.from_dense(cells), np.where(cells[:, :1] > 0, 1.0, -1.0)
    model = PrimalModel(KernelForm(gamma=2.0), d, 1, loss="hinge", rho=1e-3)
    model.partial_fit(rows, y)
    state = model.state()
    pending = state["pending_rows"]
    indices = np.array(pending.indices)
    indices[pending.indptr[1:] - 1] = 1_999_999_999
    shape = (pending.shape[0], 2_000_000_000)
    with pytest.raises(ValueError, match=r"pending_rows.*3000"):
        PrimalModel.from_state({**state, "pending_rows": Observed(pending.indptr, indices, pending.values, shape)})


def test_labels_codes_and_classes_are_checked_against_each_other(tmp_path):
    """Three columns of labels for two classes: predict took the third of them. Found by fuzzing."""
    model = MatrixCompletionClassifier(lam=1.0, mu=0.1).fit(X, LABELS)

    def more(arrays, names, tables, content):
        for name in ("label_components_", "bias_"):
            arrays[names[name]] = np.concatenate([arrays[names[name]]] * 3, axis=-1)

    with pytest.raises(ValueError, match="label_components_ must be of shape"):
        load_model(forged(model, tmp_path / "m", more))


def test_members_of_an_ensemble_answer_for_its_classes(tmp_path):
    """A member of 2^31 classes asked for 32 GiB when it was tried. Found by fuzzing."""
    model = LacunarClassifier(members=["boosting", "forest"]).fit(X, LABELS)
    model.ensemble_.members_[0].n_classes_ = 2**31 - 1
    save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match=r"an ensemble of 2 classes .* members of \[2, 2147483647\]"):
        load_model(tmp_path / "m")


def test_slots_of_the_pool_belong_to_one_column_each(tmp_path):
    model = PETRELS(2, random_state=0).fit(X)

    def shared(arrays, names, tables, content):
        arrays[names["slot"]] = np.zeros_like(arrays[names["slot"]])

    with pytest.raises(ValueError, match="slot"):
        load_model(forged(model, tmp_path / "m", shared))


@pytest.mark.parametrize("family", models.MODELS)
def test_every_learned_array_has_a_rule(family):
    """An array that a class learns and no rule speaks of would reach the core as a file has it."""
    bare = []
    for name, make in models.MODELS[family].items():
        with warnings.catch_warnings(action="ignore"):
            model = make()
        spoken = getattr(model, "_schema", {}).keys() | CHECKED_BY_HAND
        kept = {key: value for key, value in vars(model).items() if key not in model.get_params(deep=False)}
        bare += [(name, k) for k, v in kept.items() if isinstance(v, np.ndarray | Observed) and k not in spoken]
    assert not bare


# By the codec (`check_fitted_state`) and by `_check_loaded`.
CHECKED_BY_HAND = {"classes_", "feature_names_in_", "laws_", "W_", "potential_", "W_sum_"}


@pytest.mark.parametrize(
    ("rule", "value", "told"),
    [
        (floats("d"), np.ones(2), "of shape"),
        (floats("d"), np.array([1.0, np.nan, 0.0]), "finite; got nan at"),
        (floats("d"), np.ones(3, int), "an array of floats"),
        (floats("d"), [1.0, 2.0, 3.0], "an array of floats"),
        (floats("d", dtype=np.float64), np.ones(3, np.float32), "float64"),
        (whole("d", high=2), np.array([0, 3, 1]), "at most 2; got 3 at"),
        (whole("d"), np.array([0, -1, 1]), "at least 0; got -1 at"),
        (whole("d", distinct=True), np.array([0, 2, 2]), "without repeats"),
        (Array("U", ("d",), ascending=True), np.array(["b", "a", "c"]), "ascending"),
        (Number(whole=True, low=0), 0.5, "a whole number"),
        (Number(whole=True), True, "a whole number"),
        (Number(), 10**400, "a number"),
        (Number(low=0, above=True), 0.0, "above 0"),
        (Number(names="d", whole=True), 4, "3, as the parts around it"),
        (OneOrMany(("d",), "many"), np.ones((3, 2)), "of shape"),
    ],
)
def test_rules_name_the_part_the_wish_and_what_came(rule, value, told):
    with pytest.raises(ValueError, match=rf"^of\['part'\] must be .*{told}"):
        check_parts({"part": value}, {"part": rule}, "of", {"d": 3, "many": 5})


def test_parts_too_many_or_too_few_are_named():
    with pytest.raises(ValueError, match=r"state must be a dict of a, b; got \['a'\]"):
        check_parts({"a": 1}, {"a": Number(), "b": Number()}, "state", {})


@pytest.mark.slow
@pytest.mark.parametrize("family", models.MODELS)
def test_structured_changes_keep_an_archive_well_formed(family):
    """Else the fuzzer would try the checks of the archive only, which stand before those of the models."""

    rng, changed = Random(0), 0
    for data in models.files(family)[:3]:
        for _ in range(20):
            header, arrays = archives.unpack(data)
            structure.change(header["content"], arrays, rng)
            made = archives.pack(header, arrays)
            again, read = archives.unpack(made)
            assert set(again["arrays"]) == set(read) == set(arrays)
            changed += made != archives.pack(*archives.unpack(data))
    assert changed > 30
