"""The main job: which learner predicts a column of a table with missing entries best, and a model of it in a file."""

from lacunar.compare.comparison import Comparison, Learner, Score, evaluate, learners, own_learner
from lacunar.compare.problem import Problem, TableModel, choose_target, guess_task, load_problem
from lacunar.compare.report import visible, write_report, write_whole
from lacunar.compare.tables import Table, UserError, read_table
from lacunar.compare.terminal import print_table, run

__all__ = [
    "Comparison",
    "Learner",
    "Problem",
    "Score",
    "Table",
    "TableModel",
    "UserError",
    "choose_target",
    "evaluate",
    "guess_task",
    "learners",
    "load_problem",
    "own_learner",
    "print_table",
    "read_table",
    "run",
    "visible",
    "write_report",
    "write_whole",
]
