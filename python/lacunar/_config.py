"""What this installation is made of."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from lacunar import _core
from lacunar._threads import available_cpus

__version__: str = _core.__version__

_DEPENDENCIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "narwhals",
    "joblib",
    "rich",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
)


def config() -> dict[str, object]:
    """Facts about this installation and machine, as `show_config` prints them."""
    facts: dict[str, object] = {
        "lacunar": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    facts |= _core.build_info()
    facts["cpus of this process"] = available_cpus()
    for package in _DEPENDENCIES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def show_config() -> None:
    """Print versions, compiler, instruction set and threads: what a bug report needs.

    Examples
    --------
    >>> import lacunar
    >>> lacunar.show_config()  # doctest: +ELLIPSIS
    lacunar ...
    """
    facts = config()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
