"""The main job: which learner predicts a column of a table with holes best, and a model of it in a file."""

from lacunar.compare._encode import TableEncoder, choose_target, guess_task
from lacunar.compare._evaluate import Comparison, Score, evaluate
from lacunar.compare._learners import Learner, learners, own_learner
from lacunar.compare._model import TableModel
from lacunar.compare._problem import Problem, load_problem
from lacunar.compare._progress import print_table, run
from lacunar.compare._report import write_report, write_whole
from lacunar.compare._tables import Table, UserError, read_table
from lacunar.compare._text import visible

__all__ = [
    "Comparison",
    "Learner",
    "Problem",
    "Score",
    "Table",
    "TableEncoder",
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
