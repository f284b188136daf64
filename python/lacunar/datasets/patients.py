"""`load_patients`: 400 real patients of intensive care, the one table that this package ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lacunar.datasets.fetch import bunch_of, frame_of
from lacunar.datasets.sets import PHYSIONET_TARGET, read_physionet

FILE = Path(__file__).with_name("patients.csv.gz")


def load_patients(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """400 patients of intensive care, 114 measurements of their first two days, and who died in
    hospital.

    The first rows of `fetch_dataset("physionet2012-set-a")`. 26 % of the cells are missing, by what
    doctors chose to measure.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return `(data, target)` only.
    as_frame : bool, default=False
        `data` as a pandas DataFrame.

    Returns
    -------
    found : Bunch
        What `fetch_dataset` returns, and `filename`: the path of a CSV, whose first column is the
        target, "In-hospital_death".

    Examples
    --------
    >>> from lacunar.datasets import load_patients
    >>> X, died = load_patients(return_X_y=True)
    >>> X.shape, round(float(died.mean()), 2)
    ((400, 114), 0.13)
    """
    arrays, tasks = read_physionet([FILE.read_bytes()]), {PHYSIONET_TARGET: "binary"}
    bunch = bunch_of(arrays, "physionet2012-set-a", tasks, PHYSIONET_TARGET)
    bunch.filename = str(FILE)
    if as_frame:
        bunch.data = frame_of(bunch, "patients")
    return (bunch.data, bunch.target) if return_X_y else bunch
