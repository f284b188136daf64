"""Numbers that stand for a missing value are found, named with a remedy at every door, and never replaced."""

import os
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import lacunar
from lacunar.cli import main
from lacunar.comparison import load_problem
from lacunar.observed.sentinels import sentinels_of, warn_of_sentinels

GENERATOR = np.random.default_rng(0)
N = 120
AGE = GENERATOR.integers(18, 60, N).astype(float)
FRAME = pd.DataFrame({"age": AGE, "dose": GENERATOR.normal(size=N).round(2), "y": np.where(AGE > 40, "old", "young")})
FRAME.loc[:11, "age"] = -999


def kinds(generator, n):
    """Columns that hold nothing but what they say."""
    return {
        "normal": generator.normal(generator.normal() * 50, generator.lognormal(1, 1.5), n),
        "rounded": generator.normal(generator.normal() * 30, generator.lognormal(1.5, 1), n).round(),
        "lognormal": generator.lognormal(generator.normal() * 2, generator.uniform(0.3, 2), n),
        "money": (generator.lognormal(4, 1.5, n) / 10).round() * 10,
        "heavy tails": (generator.standard_cauchy(n) * generator.lognormal(1, 1)).round(),
        "heavy counts": (generator.pareto(generator.uniform(0.8, 3), n) * generator.lognormal(1, 1)).round(),
        "ages": np.clip(generator.normal(45, 20, n), 0, 99).round(),
        "ages cut at 99": np.minimum(generator.gamma(2, 20, n).round(), 99),
        "counts": generator.poisson(generator.lognormal(1, 1.2), n).astype(float),
        "counts less one": generator.poisson(3, n) - 1.0,
        "zip codes": generator.integers(501, 99951, n).astype(float),
        "percentages": np.clip(generator.beta(generator.uniform(0.5, 8), 1, n) * 100, 0, 100).round(),
        "years": generator.integers(1900, 2026, n).astype(float),
        "answers": generator.integers(1, generator.integers(3, 11), n).astype(float),
        "signs": generator.choice([-1.0, 0.0, 1.0], n),
        "degrees": generator.normal(8, 7, n).round(),
        "prices": generator.integers(1, 120, n) - 0.01,
        "two values": generator.choice([0.0, 99.0], n),
        "nothing": np.full(n, np.nan),
        "one value": np.full(n, 999.0),
    }


def test_no_false_alarm_in_two_thousand_columns():
    generator = np.random.default_rng(1)
    alarms = [
        (name, n, sentinels_of(column))
        for repeat in range(100)
        for n in [(50, 200, 1000, 10_000)[repeat % 4]]
        for name, column in kinds(generator, n).items()
    ]
    assert len(alarms) == 2000
    assert [alarm for alarm in alarms if alarm[2]] == []


@pytest.mark.skipif("LACUNAR_DATA" not in os.environ, reason="LACUNAR_DATA names no folder with tables")
def test_no_false_alarm_in_real_tables():
    sys.path.insert(0, os.environ["LACUNAR_DATA"])
    from load import load, names

    for name in names():
        X = load(name)[0]
        columns = np.split(X.tocsc().data, X.tocsc().indptr[1:-1]) if sp.issparse(X) else X.T
        assert not [j for j, column in enumerate(columns) if sentinels_of(column)], name


@pytest.mark.parametrize("code", [-9, -99, -999, -9999, 999, 9999, 99999, -999.9, -88])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_far_outside_are_found(code, dtype):
    generator, missed = np.random.default_rng(2), []
    for name, column in kinds(generator, 500).items():
        if name in ("two values", "one value", "nothing"):  # nothing else is left to be far from
            continue
        column[:7] = code
        column = column.astype(dtype)
        others = column[7:]
        low, high = others.min(), others.max()
        apart = max(0.5 * (high - low), np.subtract(*np.percentile(others, [75, 25])))
        if (max(low - code, code - high) >= apart or (code < 0 <= low)) and not sentinels_of(column):
            missed.append(name)
    assert missed == []


def test_several_codes_and_their_counts():
    column = np.concatenate([np.arange(50.0), [-9] * 4, [-8] * 3, [999] * 5, [-99]])
    (sentinel,) = sentinels_of(
        column
    )  # -99 stands in one row: a value like others, and beside it -9 and -8 are no more
    assert (sentinel.value, sentinel.rows, sentinel.low, sentinel.high) == (999, 5, -99, 49)
    assert [s.value for s in sentinels_of(column[:-1])] == [-9, -8, 999]
    ages = np.concatenate([np.arange(98.0), [99] * 3, [999] * 3])
    assert [(s.value, s.high) for s in sentinels_of(ages)] == [(999, 99)]


def test_minus_one_needs_more():
    days = np.concatenate([np.arange(1.0, 200), [-1] * 20])
    assert [s.value for s in sentinels_of(days)] == [-1]
    assert sentinels_of(np.repeat([-1.0, 0, 1], 10)) == []


def frames():
    X = FRAME.drop(columns="y")
    yield "frame", X
    yield "array", X.to_numpy()
    yield "sparse", sp.csr_array(X.to_numpy())
    yield "observed", lacunar.Observed.from_dense(X.to_numpy())


@pytest.mark.filterwarnings(
    "ignore:the rows to predict lack other entries"
)  # so do rows with sentinels beside rows without
@pytest.mark.parametrize(("kind", "X"), list(frames()), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("learner", [lacunar.LacunarClassifier, lacunar.LacunarRegressor])
def test_learners_warn_once_and_replace_nothing(kind, X, learner):
    name = "'age'" if kind == "frame" else "'x0'"
    y = FRAME["y"] if learner is lacunar.LacunarClassifier else AGE
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = learner(members=["gaussian"], cv=2, random_state=0).fit(X, y)
    said = [w for w in caught if "may hold a number for what is missing" in str(w.message)]
    assert len(said) == 1
    assert f"{name} holds -999 in 12 rows" in str(said[0].message)
    assert said[0].filename == __file__
    with warnings.catch_warnings(record=True, action="always") as caught:
        cleaned = FRAME.drop(columns="y").replace(-999, np.nan)
        other = learner(members=["gaussian"], cv=2, random_state=0).fit(
            cleaned if kind == "frame" else cleaned.to_numpy(), y
        )
    assert not [w for w in caught if "may hold a number" in str(w.message)]
    assert (np.asarray(model.predict(X)) != np.asarray(other.predict(X))).any()


def test_many_columns_make_one_warning():
    with pytest.warns(UserWarning, match=r"'c4' holds .*and 3 more such values") as caught:
        warn_of_sentinels([f"c{k}" for k in range(8)], [np.r_[np.arange(20.0), [999] * 5]] * 8)
    assert len(caught) == 1


def test_compare_warns_in_terminal_report_and_result(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    arguments = [
        "compare",
        str(tmp_path / "t.csv"),
        "--learner",
        "no columns",
        "--repeats",
        "1",
        "--report",
        str(report),
    ]
    assert main(arguments) == 0
    result = lacunar.compare(FRAME, "y", learner="no columns", repeats=1)
    for said in (
        capsys.readouterr().err,
        report.read_text(encoding="utf-8"),
        " ".join(result.warnings),
        result._repr_html_(),
    ):
        assert "age holds -999 in 12 rows" in said
        assert "--na-values age=-999" in said
    assert main([*arguments, "--na-values", "age=-999"]) == 0  # the remedy
    assert "holds -999" not in capsys.readouterr().err
    result = lacunar.compare(FRAME, "y", learner="no columns", repeats=1, na_values={"age": -999})
    assert not [line for line in result.warnings if "-999" in line]
    assert result.problem.frame["age"].isna().sum() == 12


def test_a_target_of_numbers_is_looked_at():
    problem = load_problem(FRAME.assign(target=FRAME["age"]), task="regression", drop=["age"])
    assert any("target holds -999" in note for note in problem.notes)
    assert any(
        "'strange name=-999'" in note for note in load_problem(FRAME.rename(columns={"age": "strange name"})).notes
    )
