"""Tables to try things on: mechanisms of missingness and public sets. The experiments of the papers are in `lacunar.papers`."""

from lacunar.datasets.fetch import dataset_names, fetch_dataset
from lacunar.datasets.hide import (
    hide_all_but,
    hide_blocks,
    hide_by_row,
    hide_mar,
    hide_mcar,
    hide_mnar,
    hide_panels,
    load_digit_quadrants,
)
from lacunar.datasets.patients import load_patients

__all__ = [
    "dataset_names",
    "fetch_dataset",
    "hide_all_but",
    "hide_blocks",
    "hide_by_row",
    "hide_mar",
    "hide_mcar",
    "hide_mnar",
    "hide_panels",
    "load_digit_quadrants",
    "load_patients",
]
