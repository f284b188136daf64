"""The how-to for AnnData and xarray runs: on the packages where they are installed, else on what it uses of them."""

import importlib.util
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lacunar import LacunarClassifier, LacunarRegressor
from lacunar.lowrank import POPCA

PAGE = Path(__file__).parents[2] / "docs" / "user" / "howto.md"
if not PAGE.is_file():
    pytest.skip("the pages are not beside the tests", allow_module_level=True)
BLOCKS = re.findall(r"^```\{code-block\} python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
QUICK = {
    "LacunarClassifier": partial(LacunarClassifier, members=["logistic"]),
    "LacunarRegressor": partial(LacunarRegressor, members=["linear"]),
    "POPCA": POPCA,
    "pd": pd,
}
installed = importlib.util.find_spec


class Cells:
    """What the page uses of an AnnData."""

    def __init__(self, X, obs):
        self.X, self.obs, self.obsm, self.layers = X, obs, {}, {}

    def to_df(self, layer=None):
        return pd.DataFrame(self.X if layer is None else self.layers[layer], index=self.obs.index)


class Weather(dict):
    """What the page uses of an xarray.Dataset."""

    def to_dataframe(self):
        return self["frame"]


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (80, 12)).astype(float)
    names = [f"cell{i}" for i in range(80)]
    obs = pd.DataFrame({"type": np.where(X[:, 0] > 0, "b", "t"), "donor": np.arange(80) // 8}, index=names)
    if installed("anndata"):
        import anndata

        found = anndata.AnnData(X, obs=obs)
    else:
        found = Cells(X, obs)
    found.layers["measured"] = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    return found


@pytest.fixture
def weather(monkeypatch):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product(
        [pd.date_range("2026-01-01", periods=30), ["a", "b", "c"]], names=["time", "place"]
    )
    frame = pd.DataFrame(rng.normal(size=(90, 2)), index=index, columns=["temperature", "wind"])
    frame["rain"] = frame["temperature"] + 0.1 * rng.normal(size=90)
    frame["temperature"] = frame["temperature"].mask(rng.random(90) < 0.2)
    if installed("xarray"):
        return frame.to_xarray()
    monkeypatch.setattr(pd.Series, "to_xarray", lambda series: series)
    return Weather(frame=frame)


def test_blocks_are_found():
    assert len(BLOCKS) == 2


def test_anndata(cells):
    exec(BLOCKS[0], QUICK | {"cells": cells})
    assert set(cells.obs["called"]) <= {"b", "t"}
    assert cells.obsm["X_popca"].shape == (80, 10)


def test_xarray(weather):
    exec(BLOCKS[1], QUICK | {"weather": weather})
    predicted = weather["predicted"]
    assert np.isfinite(np.asarray(predicted)).all()
    assert np.asarray(predicted).size == 90
