"""The main job: which learner predicts a column of a table with missing entries best, and a model of it in a file."""

from lacunar.comparison.cells import UserError, visible
from lacunar.comparison.comparison import Comparison, Score, evaluate
from lacunar.comparison.learners import Learner, learner_named, learners
from lacunar.comparison.model import TableModel
from lacunar.comparison.problem import Problem, choose_target, guess_task, load_problem, named_columns
from lacunar.comparison.reading import Table, read_table, write_whole
from lacunar.comparison.report import write_report
from lacunar.comparison.terminal import about, compare, print_table, run

__all__ = [
    "Comparison",
    "Learner",
    "Problem",
    "Score",
    "Table",
    "TableModel",
    "UserError",
    "about",
    "choose_target",
    "compare",
    "evaluate",
    "guess_task",
    "learner_named",
    "learners",
    "load_problem",
    "named_columns",
    "print_table",
    "read_table",
    "run",
    "visible",
    "write_report",
    "write_whole",
]
