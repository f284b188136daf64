"""Models as files without pickle: arrays and a JSON header, versioned, written whole or not at all, checked on load.

Reading such a file never runs code from it: it can only name classes of this package (`registry`) and fill them
with plain data. A file of another version of the format is refused with a message.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import sklearn

from lacunar._config import __version__
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.rules import trial_rows
from lacunar.persistence import registry
from lacunar.persistence.codec import Decoder, Encoder
from lacunar.persistence.composed import is_composed, parts_of

__all__ = ["load_model", "save_model"]

MODEL_VERSION = 1
_HEADER = {"model_version", "lacunar", "sklearn", "model"}


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator of this package to one file. O(size of the model).

    Parameters
    ----------
    estimator : estimator of lacunar, or scikit-learn's Pipeline or ColumnTransformer of such
        Fitted or not, but for a ColumnTransformer, which must be fitted. Its parameters and the
        attributes ending in ``_`` are stored. Metadata requests are not.
    path : path-like
        Where to write. The file appears whole: a killed run leaves what was there before. It passes
        on the permissions of a file that it replaces, and its owner and group where the system
        allows that; a new file follows the umask. Of a symbolic link the file behind it is
        replaced, and the link stays.

    Raises
    ------
    TypeError
        When it is no estimator of this package, or a parameter is no plain data (a function, a
        generator object).
    OSError
        When the place cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from lacunar.karma import KarmaRegressor
    >>> from lacunar.persistence import load_model, save_model
    >>> X, y = np.array([[1.0, np.nan], [2.0, 0.5], [np.nan, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "y.lacunar"
    >>> model = KarmaRegressor().fit(X, y)
    >>> save_model(model, file)
    >>> bool(np.array_equal(load_model(file).predict(X), model.predict(X)))
    True
    """
    if registry.name_of(type(estimator), registry.CLASSES) is None and not is_composed(estimator):
        raise TypeError(
            f"estimator must be of a lacunar class, or a Pipeline or ColumnTransformer of such; got {type(estimator).__name__}. "
            f"Known: {', '.join(sorted(registry.CLASSES))}."
        )
    encoder = Encoder()
    model = encoder.encode(estimator, type(estimator).__name__)
    header = {
        "model_version": MODEL_VERSION,
        "lacunar": __version__,
        "sklearn": sklearn.__version__,
        "model": model,
    }
    write_archive(path, kind="model", header=header, arrays=encoder.arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save_model` wrote. O(size of the file).

    Parameters
    ----------
    path : path-like
        A model file.

    Returns
    -------
    estimator
        Of the class that was saved; its predictions are the same.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When it is no model file, is damaged, names a class or a version this lacunar does not know,
        or its parts contradict each other. Nothing of the file is run in any case.

    Examples
    --------
    See `save_model`.
    """
    shown = os.fspath(path)
    header, arrays = read_archive(path, kind="model")
    if header.get("model_version") != MODEL_VERSION or set(header) != _HEADER:
        raise ValueError(
            f"{shown!r} must be a model file of version {MODEL_VERSION}; got version {str(header.get('model_version'))[:20]!r} "
            f"written by lacunar {str(header.get('lacunar'))[:20]!r}. Load it with that version or fit again."
        )
    try:
        decoder = Decoder(arrays)
        model = decoder.decode(header["model"])
        decoder.finish()
        parts = list(parts_of(model))
        if not parts or any(registry.name_of(type(part), registry.CLASSES) is None for part in parts):
            raise ValueError("its content is no estimator")
        for part in parts:
            _try_out(part)
    except ValueError as error:
        raise ValueError(f"{shown!r} is not a sound model file: {error}. Fit and save the model again.") from None
    return model


# What a loaded model is asked at once. Only predict answers every row; of the others a ValueError may be their way to refuse one.
_VERBS = (
    *("predict", "predict_proba", "decision_function", "predict_interval", "predict_quantiles", "predict_set"),
    *("transform", "impute", "score_samples"),
)


def _try_out(model: Any) -> None:
    """Predict `trial_rows`, so that parts that do not fit together fail on loading rather than in use."""
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):  # the rows have no feature names
        for rows in trial_rows(model):
            for verb in _VERBS:
                _ask(model, verb, rows)


def _ask(model: Any, verb: str, rows: Any) -> None:
    try:
        if hasattr(model, verb):
            getattr(model, verb)(rows)
    except (MemoryError, ImportError):  # of this machine, not of the file
        raise
    except Exception as error:  # parts that do not fit raise what they like
        if verb == "predict" or not isinstance(error, ValueError):
            raise ValueError(
                f"the parts of the model do not fit together ({verb}: {type(error).__name__}: {str(error)[:200]})"
            ) from None
