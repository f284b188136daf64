"""The time limit of a comparison: cheapest first, one repeat for all before a second, who leaves and why, and an end in time."""

import time
from dataclasses import replace
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import lacunar
import lacunar.comparison.schedule as clock
import lacunar.comparison.terminal as shell
from lacunar.cli import main
from lacunar.comparison import Learner, UserError, evaluate, load_problem, print_table, write_report
from lacunar.comparison.rival import Run
from lacunar.comparison.schedule import sampled_rows

BUSY = 1.0  # seconds that a busy machine may add
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=60).round(3), "b": RNG.normal(size=60).round(3), "y": ["u", "v"] * 30})
PROBLEM = load_problem(FRAME)


def table_of(n):
    return load_problem(pd.DataFrame({"a": RNG.normal(size=n), "b": RNG.normal(size=n), "y": ["u", "v"] * (n // 2)}))


class Sleeper(DummyClassifier):
    """A fit takes as long as is said, or as long as it may; with `rows`, so long on so many rows."""

    def __init__(self, seconds=0.0, time_limit=None, rows=None):
        super().__init__()
        self.seconds, self.time_limit, self.rows = seconds, time_limit, rows

    def fit(self, X, y):
        seconds = self.seconds if self.rows is None else self.seconds * len(X) / self.rows
        time.sleep(seconds if self.time_limit is None else min(seconds, self.time_limit))
        return super().fit(X, y)


def sleeper(seconds, own=None, rows=None):
    return Learner(f"takes {seconds}", False, "", lambda seed: Sleeper(seconds, own, rows), seconds=own)


class World:
    """Comparisons under a clock that only fits move forward: `costs` are seconds of a fit, or functions of the number of rows."""

    def __init__(self, costs, monkeypatch, own=None, problem=PROBLEM):
        self.costs, self.problem, self.now, self.jobs = costs, problem, 0.0, []
        own = own or {}
        self.learners = [Learner(f"learner {k}", False, "", None, seconds=own.get(k)) for k in range(len(costs))]
        for name, double in (("perf_counter", self.read), ("time", self.read), ("one_run", self.fit)):
            monkeypatch.setattr(clock, name, double)

    def read(self):
        return self.now

    def fit(self, k, s, learner, problem, split, seed, told, until):
        if self.now > until:
            return None
        train, test = split
        cost = self.costs[k](len(train)) if callable(self.costs[k]) else self.costs[k]
        cost = cost if told is None else min(cost, told)
        self.now += cost
        self.jobs += [(k, s, len(train))]
        return Run(k, s, test, predicted=problem.y[test], wall_seconds=cost)

    def run(self, limit, folds=5, repeats=3, fit_limit=None):
        return evaluate(
            self.problem, self.learners, folds=folds, repeats=repeats, time_limit=limit, fit_limit=fit_limit, started=0.0
        )  # fmt: skip


def done(comparison, k):
    return len(comparison.split_scores(k))


def test_nothing_is_cut_without_need(monkeypatch):
    for limit in (None, 100.0):
        comparison = World([0.1, 2.0, 0.5], monkeypatch).run(limit)
        assert [done(comparison, k) for k in range(3)] == [15, 15, 15]
        assert comparison.cuts == {}
        assert not comparison.caveats


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("limit", [12.0, 25.0, 60.0, 200.0])
def test_the_cheapest_have_their_folds_and_all_have_one_repeat_before_a_second(order, limit, monkeypatch):
    costs = [[0.2, 0.9, 2.0, 4.0][k] for k in order]
    world = World(costs, monkeypatch)
    comparison = world.run(limit)
    assert world.now <= limit
    finished = [k for k in range(4) if done(comparison, k) >= 5]
    assert {k for k in range(4) if done(comparison, k) < 5} == set(comparison.cuts)
    assert all(costs[k] <= min((costs[c] for c in comparison.cuts), default=np.inf) for k in finished)
    assert 0.2 in {costs[k] for k in finished}
    first_of_a_second = next((i for i, job in enumerate(world.jobs) if job[1] >= 5), len(world.jobs))
    assert all(split >= 5 for _, split, _ in world.jobs[first_of_a_second:])
    for split in range(1, 15):  # cheapest first, once costs are known
        cost = [costs[k] for k, s, _ in world.jobs if s == split]
        assert cost == sorted(cost)


def test_a_cheap_learner_is_never_cut_for_a_dear_one(monkeypatch):
    generator = np.random.default_rng(1)
    for _ in range(60):
        costs = generator.lognormal(0, 1.5, size=generator.integers(2, 9))
        limit = float(generator.uniform(2, 8) * costs.sum())
        world = World(costs.tolist(), monkeypatch)
        comparison = world.run(limit, folds=int(generator.integers(2, 6)), repeats=2)
        assert world.now <= limit
        cut = [costs[k] for k in comparison.cuts]
        survivors = [costs[k] for k in range(len(costs)) if k not in comparison.cuts]
        assert survivors
        assert not cut or max(survivors) <= min(cut)
        assert all("--time-limit" in why for why in comparison.cuts.values())


@pytest.mark.parametrize("costs", [[30.0, 0.02, 0.01], [0.02, 30.0, 0.01], [0.02, 0.01, 30.0]])
def test_one_fit_that_overruns_the_limit_leaves_the_others_their_folds(costs, monkeypatch):
    """It is not ended in its middle; then come 15 % of the limit and no more."""
    world = World(costs, monkeypatch)
    comparison = world.run(3.0)
    assert list(comparison.cuts) == [costs.index(30.0)]
    assert all(done(comparison, k) >= 5 for k in range(3) if costs[k] < 1)
    assert world.now <= 1.15 * 3.0 + 30.0


def test_fits_that_grow_dear_stop_the_comparison_between_two_fits(monkeypatch):
    """Those that had as many folds as all others are told apart by them, and none is cut for another's sake."""
    fits = iter([0.1] * 4 + [50.0] * 100)
    world = World([lambda n: next(fits), lambda n: next(fits)], monkeypatch)
    comparison = world.run(10.0, folds=5, repeats=1)
    # One fit overran the limit, and one began in the time after it.
    assert world.now <= 1.15 * 10.0 + 2 * 50.0
    assert comparison.cuts == {}
    assert any("Stopped after 3 of 5 splits" in line for line in comparison.caveats)


@pytest.mark.parametrize("own", [{}, {0: 30.0}])
def test_the_limit_that_a_cut_names_is_enough(own, monkeypatch):
    generator, named = np.random.default_rng(2), 0
    for _ in range(60):
        costs = generator.lognormal(0, 1, size=4).tolist()
        for k, why in World(costs, monkeypatch, own).run(limit=4.0 * sum(costs), repeats=1).cuts.items():
            assert why.endswith("keeps it")
            named += 1
            again = World(costs, monkeypatch, own).run(limit=float(why.split("--time-limit ")[1].split()[0]), repeats=1)
            assert k not in again.cuts
    assert named > 20


LARGE = table_of(6000)


def test_who_is_too_dear_for_a_large_table_is_known_from_few_rows(monkeypatch):
    """By the square of the rows 64 seconds a fit: a quarter of a second and 4 are spent to see it."""
    world = World([lambda n: 64 * (n / 4800) ** 2, lambda n: n / 4800], monkeypatch, problem=LARGE)
    comparison = world.run(100.0, repeats=1)
    assert {n for k, _, n in world.jobs if k == 0} == {300, 1200}
    assert list(comparison.cuts) == [0]
    assert "about 64 s a fit: its 5 folds need 320 s" in comparison.cuts[0]
    assert done(comparison, 1) == 5
    assert comparison.enough[0] > 325


def test_few_rows_are_tried_where_time_may_be_short_only(monkeypatch):
    for problem, limit, sizes in ((LARGE, None, {4800}), (PROBLEM, 9.0, {48}), (LARGE, 9.0, {300, 1200, 4800})):
        world = World([0.01], monkeypatch, problem=problem)
        world.run(limit, repeats=1)
        assert {n for _, _, n in world.jobs} == sizes


def test_a_learner_that_fails_on_few_rows_has_its_folds():
    class Picky(DummyClassifier):
        def fit(self, X, y):
            if len(X) < 4000:
                raise ValueError("too few rows")
            return super().fit(X, y)

    comparison = evaluate(LARGE, [Learner("picky", False, "", lambda seed: Picky())], repeats=1, time_limit=60.0)
    assert comparison.scores()[0].splits == 5


def test_a_learner_with_a_limit_of_its_own_gets_what_the_others_leave(monkeypatch):
    world = World([100.0, 0.1, 1.0], monkeypatch, own={0: 12.0})
    comparison = world.run(limit=30.0)
    assert comparison.cuts == {}
    assert done(comparison, 0) >= 5
    assert world.now <= 30.0
    assert comparison.rivals[0].time_limit == 3.0  # of 25 seconds for five folds; half of the half of 12
    assert [k for k, s, _ in world.jobs if s < 2] == [1, 2, 0, 0, 1, 2]  # then beside the others


def test_a_learner_that_waits_is_not_begun_when_the_limit_was_overrun(monkeypatch):
    """It would take of the time after the limit what the cheap ones need."""
    comparison = World([5.0, 0.01, 50.0], monkeypatch, own={0: 5.0}).run(limit=10.0, repeats=1)
    assert comparison.cuts[0].startswith("not begun")
    assert "after the cheaper learners" in comparison.cuts[2]
    assert done(comparison, 1) == 5


def test_a_learner_that_waits_gets_what_those_leave_that_are_too_dear(monkeypatch):
    """A fold of 20 seconds leaves no time for four more, and all of it for the others."""
    comparison = World([9.0, 0.1, 20.0], monkeypatch, own={0: 9.0}).run(limit=30.0, repeats=1)
    assert list(comparison.cuts) == [2]
    assert comparison.rivals[0].time_limit == 9.0 / 8


def test_what_may_be_dear_on_few_rows_is_tried_after_the_others(monkeypatch):
    world = World([30.0, 0.1, 0.01], monkeypatch)
    world.learners[0] = replace(world.learners[0], slow=True)
    world.learners[2] = replace(world.learners[2], ours=True)
    world.run(limit=10.0, repeats=1)
    assert [k for k, s, _ in world.jobs if s == 0] == [1, 2, 0]


def test_a_learner_with_a_limit_of_its_own_keeps_the_fit_limit(monkeypatch):
    comparison = World([100.0, 0.1], monkeypatch, own={0: 12.0}).run(limit=60.0, fit_limit=2.0, repeats=1)
    assert comparison.cuts == {}
    assert comparison.rivals[0].time_limit < 2.0


def test_fits_that_take_no_time_at_all_are_no_fault(monkeypatch):
    """The clocks of some systems stand still that long."""
    comparison = World([0.0, 0.0], monkeypatch, problem=LARGE).run(limit=60.0)
    assert [done(comparison, k) for k in range(2)] == [15, 15]


def test_a_fit_limit_cuts_by_itself(monkeypatch):
    comparison = World([0.1, 3.0], monkeypatch).run(limit=None, fit_limit=1.0)
    assert comparison.cuts == {1: "3 s for one fit; --fit-limit allows more"}
    assert done(comparison, 0) == 15
    comparison = World([0.1, lambda n: n / 1200], monkeypatch, problem=LARGE).run(limit=None, fit_limit=1.5)
    assert comparison.cuts == {1: "about 4 s for one fit; --fit-limit allows more"}


@pytest.mark.slow
def test_a_comparison_ends_in_time_although_one_fit_is_slow(tmp_path, capsys):
    begun = perf_counter()
    learners = [sleeper(30.0, rows=4800), sleeper(0.02), sleeper(0.0)]
    comparison = evaluate(LARGE, learners, folds=5, repeats=1, time_limit=6.0, started=begun)
    assert perf_counter() - begun < 1.1 * 6.0 + BUSY
    assert list(comparison.cuts) == [0]
    assert [score.splits for score in comparison.scores()] == [5, 5, 0]
    print_table(comparison)
    write_report(comparison, tmp_path / "r.html")
    for said in (
        capsys.readouterr().out,
        (tmp_path / "r.html").read_text(encoding="utf-8"),
        repr(comparison),
        comparison._repr_html_(),
    ):
        for part in (
            "takes 30.0",
            "a fit: its 5 folds",
            "after the cheaper learners",
            "Left out: takes 30.0",
        ):
            assert part in " ".join(said.split())


@pytest.mark.slow
def test_processes_keep_the_limit():
    quick = [Learner(name, False, "", make_quick) for name in ("quick", "twin")]
    evaluate(PROBLEM, quick, folds=3, repeats=1, n_jobs=2)  # processes have imported what they need
    begun = perf_counter()
    learners = [Learner("slow", False, "", make_slow), Learner("quick", False, "", make_quick)]
    comparison = evaluate(PROBLEM, learners, folds=3, repeats=1, time_limit=4.0, n_jobs=2)
    assert perf_counter() - begun < 1.1 * 4.0 + BUSY
    assert list(comparison.cuts) == [0]
    assert done(comparison, 1) == 3


def make_slow(seed):
    return Sleeper(2.5)


def make_quick(seed):
    return Sleeper(0.01)


def test_a_slow_fit_that_was_not_shortened_is_not_said_to_do_better_with_more_time():
    comparison = evaluate(PROBLEM, [sleeper(5.0, own=5.0), sleeper(0.0)], folds=2, repeats=1, time_limit=1.5)
    assert comparison.cuts == {}
    assert not any("told to keep" in line for line in comparison.caveats)


@pytest.mark.parametrize("name", ["no columns", ["no columns"], ("no columns",)])
def test_one_learner_may_be_named_by_a_string(name):
    result = lacunar.compare(FRAME, "y", learner=name, folds=2, repeats=1, use="a")
    assert result.table["learner"].tolist() == ["no columns"]


def test_names_that_are_none():
    for wrong in (5, [5], None):
        with pytest.raises(TypeError, match=r"learner must be a name or a sequence of names; got"):
            lacunar.compare(FRAME, "y", learner=wrong)


def test_what_a_learner_shortened_is_repeated():
    """In the caveats, from the report of a learner with a time limit of its own."""

    class Hurried(Sleeper):
        @property
        def report_(self):
            return {"member": ["logistic", "kernels", "forest"], "shortened": ["", "1 of 4 kernels", "left out"]}

    learners = [Learner("hurried", False, "", lambda seed: Hurried(5.0), seconds=5.0), sleeper(0.0)]
    comparison = evaluate(load_problem(FRAME), learners, folds=2, repeats=1, time_limit=1.5)
    assert any(
        "was told to keep each fit within" in line and "and shortened kernels, forest (left out)" in line
        for line in comparison.caveats
    )


# -- large tables, and constants ----------------------------------------------------------------------------------------

CONSTANT = Learner("no columns", False, "", lambda seed: DummyClassifier(), baseline=True)


def broken(seed):
    raise ValueError("never made")


@pytest.mark.parametrize("time_limit", [1.0, None])
def test_a_constant_that_ends_alone_is_no_best_learner(time_limit, tmp_path, capsys):
    """Whether the others took too long or failed."""
    others = [sleeper(0.5)] if time_limit else [Learner("broken", False, "", broken)]
    comparison = evaluate(load_problem(FRAME), [*others, CONSTANT], repeats=1, time_limit=time_limit)
    assert "lowest" not in comparison.table["remark"].tolist()
    with pytest.raises(UserError, match=r"there is no best learner: nothing finished but no columns.* --time-limit"):
        _ = comparison.best_model_
    print_table(comparison)
    write_report(comparison, tmp_path / "r.html")
    for said in (capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf-8")):
        assert "Nothing finished but no columns, which predicts the same for every row" in said
        assert "nothing to compare with" in said
    if time_limit:
        named = int(comparison.undecided().split("--time-limit ")[1].split()[0])
        assert named == comparison.enough[0] > time_limit


def test_a_constant_is_best_where_others_finished_or_none_was_asked_for():
    for others in ([], [sleeper(0.0)]):
        comparison = evaluate(load_problem(FRAME), [CONSTANT, *others], repeats=1)
        assert not comparison.undecided()
        assert comparison.best_model_.predict(FRAME).shape == (60,)


def test_a_comparison_of_constants_alone_ends_with_1(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shell, "learners", lambda task, seconds: [Learner("broken", False, "", broken), CONSTANT])
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert main(["compare", str(tmp_path / "t.csv"), "--repeats", "1", "--keep", str(tmp_path / "m.lacunar")]) == 1
    assert not (tmp_path / "m.lacunar").exists()
    assert "Nothing finished but no columns" in capsys.readouterr().out


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(30_000, 3)).round(4), columns=list("abc"))
    return load_problem(frame.assign(y=np.where(rng.uniform(size=30_000) < 0.03, "rare", "common")))


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"time_limit": 30.0}, 24_000),
        ({"time_limit": None}, 30_000),
        ({"time_limit": 30.0, "max_rows": 0}, 30_000),
        ({"time_limit": 30.0, "max_rows": 30_000}, 30_000),
        ({"time_limit": None, "max_rows": 501}, 501),
    ],
)
def test_a_large_table_is_compared_on_a_sample(options, rows, large, capsys):
    comparison = evaluate(large, [sleeper(0.0)], folds=3, repeats=2, seed=1, **options)
    assert comparison.n_rows == rows
    for train, test in comparison.splits:
        both = np.sort(np.concatenate([train, test]))
        np.testing.assert_array_equal(both, np.sort(np.concatenate(comparison.splits[0])))
        assert len(np.unique(both)) == rows
    assert (large.y[both] == "rare").mean() == pytest.approx((large.y == "rare").mean(), abs=1.1 / rows)
    print_table(comparison)
    assert (f"Compared on {rows:,} of 30,000 rows" in capsys.readouterr().out) == (rows < 30_000)
    assert np.isnan(comparison.rivals[0].row_losses(comparison.problem)).sum() == 30_000 - rows
    assert len(comparison.rivals[0].held_out(comparison.problem)[0]) == 2 * rows


def test_seeds_draw_rows(large):
    samples = [sampled_rows(large, 1000, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(samples[0], samples[1])
    assert len(np.intersect1d(samples[0], samples[2])) < 200


def test_wide_tables_are_compared_on_fewer_rows(large):
    for columns, rows in ((150, 16_000), (5000, 10_000)):
        wide = replace(large, X=np.broadcast_to(large.X[:, :1], (30_000, columns)))
        assert evaluate(wide, [], folds=3, repeats=1, time_limit=9.0).n_rows == rows


def test_a_report_of_a_sample_says_so(large, tmp_path):
    comparison = evaluate(large, [sleeper(0.0), CONSTANT], folds=5, repeats=1, max_rows=400)
    write_report(comparison, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Compared on 400 of 30,000 rows" in page
    assert "cross-validation on 400 of 30,000 rows" in page


def test_too_few_rows_to_compare_on_are_refused():
    with pytest.raises(UserError, match=r"`max_rows` must be at least 10 for 5 folds, or 0 for all; got 9"):
        lacunar.compare(FRAME, max_rows=9)
    with pytest.raises(UserError, match="120 rows, 60 of them different, are too few for 31 folds"):
        lacunar.compare(pd.concat([FRAME, FRAME]), folds=31)
