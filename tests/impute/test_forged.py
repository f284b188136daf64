"""Model files of imputers whose parts contradict each other are refused before anything reads them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from lacunar.impute import Imputer, MultipleImputer
from lacunar.persistence import load_model, save_model


def table():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["u", "v", "w"], 60), "c": rng.normal(size=60)})
    return frame.mask(rng.random((60, 3)) < 0.2)


def shorter(model):
    model.learned_ = model.learned_[:-1]


def other_levels(model):
    model.columns_ = [replace(c, levels=c.levels[:2]) if c.levels else c for c in model.columns_]


def other_kind(model):
    model.columns_ = [
        replace(c, kind="date") if c.kind == "number" else replace(c, kind="text", levels=()) for c in model.columns_
    ]


def no_scale(model):
    model.learned_ = [replace(part, scale=0.0) for part in model.learned_]


def infinite_sample(model):
    model.learned_ = [replace(part, sample=np.full_like(part.sample, np.inf)) for part in model.learned_]


def no_donors(model):
    model.models_[0]["fits"] = model.models_[0]["fits"][:, :0]
    model.models_[0]["values"] = model.models_[0]["values"][:, :0]


def other_width(model):
    model.models_[0]["drawn"] = model.models_[0]["drawn"][:, :, :2]


def odd_draws(model):
    model.imputed_[1] = model.imputed_[1] + 7


def no_model(model):
    model.models_[1] = None


def other_table(model):
    model.table_ = model.table_[:, :2]


def odd_levels(model):
    model.table_ = model.table_ * 5


def odd_seed(model):
    model.seed_ = -1


def no_joint(model):
    del model.covariance_


@pytest.mark.parametrize(
    ("make", "forge"),
    [
        *((MultipleImputer, forge) for forge in (shorter, other_levels, other_kind, no_scale, infinite_sample, no_donors, other_width, no_model, odd_draws)),
        *((Imputer, forge) for forge in (shorter, other_levels, other_kind, no_scale, other_table, odd_levels, odd_seed, no_joint)),
    ],
    ids=lambda part: part.__name__,
)  # fmt: skip
def test_parts_that_contradict_each_other_are_refused(make, forge, tmp_path):
    model = make() if make is Imputer else make(2, sweeps=2)
    with warnings.catch_warnings(action="ignore"):
        model.fit(table())
    forge(model)
    save_model(model, tmp_path / "m.lacunar")
    with pytest.raises(ValueError, match="not a sound model file"):
        load_model(tmp_path / "m.lacunar")
