"""The main job: which learner predicts a column of a table with missing entries best, and a model of it in a file."""

from lacunar.comparison.cells import UserError
from lacunar.comparison.comparison import Comparison, Score
from lacunar.comparison.learners import Learner, learners
from lacunar.comparison.model import TableModel
from lacunar.comparison.problem import Problem, load_problem
from lacunar.comparison.reading import Table, read_table
from lacunar.comparison.report import write_report
from lacunar.comparison.schedule import evaluate
from lacunar.comparison.terminal import compare, print_table

__all__ = [
    "Comparison",
    "Learner",
    "Problem",
    "Score",
    "Table",
    "TableModel",
    "UserError",
    "compare",
    "evaluate",
    "learners",
    "load_problem",
    "print_table",
    "read_table",
    "write_report",
]
