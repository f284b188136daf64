"""Hostile files for every reader of the package: `.ci/fuzz`, or `PYTHONPATH=tests python -m fuzz --help`.

A target (`targets.py`) has sound files to start from, a mutator that knows their layout (`archives.py`, `mutate.py`), a reader and
a use of what was read. `oracle.py` judges one input. Two drivers feed it: seeded mutations in plain Python, and atheris.
"""
