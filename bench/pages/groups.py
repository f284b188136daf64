"""Rows in groups and in time order: what the one learner says of its own error, and its error on rows of new groups or later rows.

    python bench/pages/groups.py                # two worlds of groups, one of time, an open table of each
    python bench/pages/groups.py --draws 5 --world people

Of every draw: the loss (log loss of labels, root mean squared error in units of y's standard deviation) of `out_of_fold_`, the loss on new groups or
later rows, its standard error over groups or blocks of time, coverage of intervals (or sets) of level .9, and the loss of the best single member. "rows"
learns as if rows were independent, "groups" is told of them by `groups=` or `cv=TimeSeriesSplit(5)`.

The standard error of "days" is too small, whatever the number of blocks: a path of slow swings does not show how far another one may lie. Over 100
draws of a ridge regression of fixed penalty, loss less estimate has mean -.4 and standard deviation 1.45 in units of it; judge the estimate over draws.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter
from sklearn.model_selection import TimeSeriesSplit

from lacunar import LacunarClassifier, LacunarRegressor

_NUMBERS, _LABELS = "numbers", "labels"
_BLOCKS = 20  # of later rows, over which the standard error of their loss is taken


class Rows(NamedTuple):
    """Rows with targets and the groups that they belong to, None where they are in the order of time."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None

    def take(self, rows: np.ndarray) -> Rows:
        return Rows(self.X[rows], self.y[rows], None if self.groups is None else self.groups[rows])


class World(NamedTuple):
    kind: str
    draw: Callable[[int], tuple[Rows, Rows]]  # training rows, and new ones


def people(seed: int) -> tuple[Rows, Rows]:
    """72 people of 15 rows each, and 200 new ones: columns say who it is, and less what the label is."""
    rng = np.random.default_rng(seed)
    n = 272
    profile, weights = rng.normal(size=(n, 10)), rng.normal(size=(10, 3)) * np.r_[np.ones(3), np.zeros(7)][:, None]
    label = (0.5 * profile @ weights + rng.gumbel(size=(n, 3))).argmax(axis=1)
    groups = np.repeat(np.arange(n), 15)
    X = profile[groups] + 0.3 * rng.normal(size=(len(groups), 10))
    X[rng.random(X.shape) < 0.1] = np.nan
    own = rng.random(len(groups)) < 0.1  # rows that are not like their person
    y = np.where(own, rng.integers(0, 3, len(groups)), label[groups])
    return _by_group(Rows(X, y, groups), 72)


def places(seed: int) -> tuple[Rows, Rows]:
    """1,945 rows of 312 places of uneven sizes, and 300 new places: columns of the row, columns of the place, and an effect of the place."""
    rng = np.random.default_rng(seed)
    n = 612
    sizes = np.maximum(rng.lognormal(1.5, 0.8, n).astype(int), 1)
    groups = np.repeat(np.arange(n), sizes)
    of_place, effect = rng.normal(size=(n, 5)), rng.normal(size=n)
    own = rng.normal(size=(len(groups), 5))
    X = np.hstack([own, of_place[groups]])
    y = own[:, 0] + 0.7 * own[:, 1] * own[:, 2] + 0.6 * of_place[groups, 0] + effect[groups]
    y = y + 0.5 * rng.normal(size=len(y))
    X[rng.random(X.shape) < 0.1] = np.nan
    return _by_group(Rows(X, y, groups), 312)


def days(seed: int) -> tuple[Rows, Rows]:
    """1,500 hours in order and 1,500 later ones: a signal of the columns, a swing that neighbours share, and columns that swing as slowly."""
    rng = np.random.default_rng(seed)
    n = 3000
    swings = lfilter([np.sqrt(1 - 0.98**2)], [1, -0.98], rng.normal(size=(n, 5)), axis=0)
    X = np.hstack([rng.normal(size=(n, 3)), swings[:, :4] + 0.1 * rng.normal(size=(n, 4))])
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * X[:, 3] + swings[:, 4] + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    rows = Rows(X, y, None)
    return rows.take(np.arange(1500)), rows.take(np.arange(1500, n))


def choices(seed: int) -> tuple[Rows, Rows]:
    """statsmodels' `modechoice`: how 210 travellers go, four rows each, one for each way; half of the travellers are new."""
    from statsmodels.datasets import modechoice

    table = modechoice.load_pandas().data
    columns = [name for name in table.columns if name not in ("individual", "choice")]
    rows = Rows(table[columns].to_numpy(float), table["choice"].to_numpy(int), table["individual"].to_numpy(int))
    return _drawn_groups(rows, seed)


def governments(seed: int) -> tuple[Rows, Rows]:
    """lifelines' `dd`: whether 1,808 governments of 202 countries were democratic, by region, year and duration; half of the countries are new."""
    from lifelines.datasets import load_dd

    table = load_dd()
    regions = table["un_region_name"].astype("category").cat.codes
    X = np.column_stack(
        [table[["start_year", "duration", "observed"]].to_numpy(float), np.eye(regions.max() + 1)[regions]]
    )
    y = (table["democracy"] == "Democracy").to_numpy(int)
    return _drawn_groups(Rows(X, y, table["cowcode2"].to_numpy()), seed)


def carbon(seed: int) -> tuple[Rows, Rows]:
    """statsmodels' `co2`: by how much a week on Mauna Loa is above the week a year before, from the same a quarter earlier; the last 30 % are new."""
    from statsmodels.datasets import co2

    series = co2.load_pandas().data["co2"].to_numpy(float)
    rise = series[52:] - series[:-52]
    week = np.arange(39, len(rise))
    X = np.column_stack(
        [rise[week - lag] for lag in (13, 14, 16, 20, 26, 39)] + [np.cos(week / 8.3), np.sin(week / 8.3)]
    )
    y = rise[week]
    known = np.flatnonzero(~np.isnan(y))
    rows, split = Rows(X[known], y[known], None), int(0.7 * len(known))
    return rows.take(np.arange(split)), rows.take(np.arange(split, len(known)))


def _by_group(rows: Rows, n_training: int) -> tuple[Rows, Rows]:
    assert rows.groups is not None
    training = rows.groups < n_training
    return rows.take(np.flatnonzero(training)), rows.take(np.flatnonzero(~training))


def _drawn_groups(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Half of the groups, drawn at random, and the others."""
    assert rows.groups is not None
    names = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    training = np.isin(rows.groups, names[: len(names) // 2])
    return rows.take(np.flatnonzero(training)), rows.take(np.flatnonzero(~training))


WORLDS = {
    "people": World(_LABELS, people),
    "places": World(_NUMBERS, places),
    "days": World(_NUMBERS, days),
    "modechoice": World(_LABELS, choices),
    "dd": World(_LABELS, governments),
    "co2": World(_NUMBERS, carbon),
}


def losses_of(kind: str, answer: Any, y: np.ndarray, classes: Any, unit: float) -> np.ndarray:
    """Of every row minus the log of the probability of its label, or the squared error in units of the variance."""
    if kind == _NUMBERS:
        return ((answer - y) / unit) ** 2
    return -np.log(np.maximum(answer[np.arange(len(y)), np.searchsorted(classes, y)], 1e-12))


def mean_and_error(losses: np.ndarray, groups: np.ndarray | None) -> tuple[float, float]:
    """The mean loss and its standard error over groups, or blocks of time."""
    if groups is None:
        groups = np.arange(len(losses)) * _BLOCKS // len(losses)
    units = np.unique(groups, return_inverse=True)[1]
    sums, counts = np.bincount(units, losses), np.bincount(units)
    mean = float(losses.mean())
    error = float(np.sqrt(((sums - mean * counts) ** 2).sum())) / len(losses)
    return mean, error


def measured(world: World, training: Rows, new: Rows, members: Any, told: bool) -> dict[str, float]:
    """One fit: its own estimate, the loss on new rows, and coverage."""
    make = LacunarRegressor if world.kind == _NUMBERS else LacunarClassifier
    fit_options: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if told and training.groups is not None:
        fit_options["groups"] = training.groups
    elif told:
        options["cv"] = TimeSeriesSplit(5)
    started = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(members=members, random_state=0, **options).fit(training.X, training.y, **fit_options)
        seconds = process_time() - started
        answer = model.predict(new.X) if world.kind == _NUMBERS else model.predict_proba(new.X)
        inside = _inside(model, world.kind, new)
    classes = getattr(model, "classes_", None)
    unit = float(training.y.std()) if world.kind == _NUMBERS else 1.0
    own = np.asarray(model.out_of_fold_)
    tested = ~np.isnan(own.reshape(len(own), -1)[:, 0])
    kept = training.take(np.flatnonzero(tested))
    estimate, of_estimate = mean_and_error(losses_of(world.kind, own[tested], kept.y, classes, unit), kept.groups)
    loss, of_loss = mean_and_error(losses_of(world.kind, answer, new.y, classes, unit), new.groups)
    return {
        "estimate": estimate,
        "loss": loss,
        "error": float(np.hypot(of_estimate, of_loss)),
        "coverage": inside,
        "seconds": seconds,
    }


def _inside(model: Any, kind: str, new: Rows) -> float:
    if kind == _NUMBERS:
        ends = model.predict_interval(new.X)
        return float(((new.y >= ends[:, 0]) & (new.y <= ends[:, 1])).mean())
    sets = model.predict_set(new.X)
    return float(sets[np.arange(len(new.y)), np.searchsorted(model.classes_, new.y)].mean())


def best_member(world: World, training: Rows, new: Rows) -> tuple[str, float]:
    """The member that, alone and told of the groups, has the least loss on new rows."""
    names = ["linear" if world.kind == _NUMBERS else "logistic", "gaussian", "kernels", "boosting", "forest"]
    losses = {name: measured(world, training, new, [name], told=True)["loss"] for name in names}
    best = min(losses, key=lambda name: losses[name])
    return best, losses[best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=list(WORLDS), action="append")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--members", action="store_true", help="fit every member alone as well")
    parser.add_argument("--quick", action="store_true", help="one draw of one world, two members")
    options = parser.parse_args()
    members: Any = "auto"
    if options.quick:
        options.world, options.draws, members = ["people"], 1, ["gaussian", "forest"]
    print(f"{'world':<11}{'draw':<5}{'told':<7}{'estimate':>9}{'loss':>8}{'s.e.':>7}{'coverage':>10}{'CPU s':>7}")
    for name in options.world or WORLDS:
        world = WORLDS[name]
        for draw in range(1 if name == "co2" else options.draws):
            training, new = world.draw(draw)
            for told in (False, True):
                row = measured(world, training, new, members, told)
                print(
                    f"{name:<11}{draw:<5}{'groups' if told else 'rows':<7}{row['estimate']:>9.3f}{row['loss']:>8.3f}{row['error']:>7.3f}"
                    f"{row['coverage']:>10.3f}{row['seconds']:>7.1f}",
                    flush=True,
                )
            if options.members:
                best, loss = best_member(world, training, new)
                print(f"{name:<11}{draw:<5}best member on new rows: {best} {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
