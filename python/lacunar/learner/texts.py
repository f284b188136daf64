"""Columns of text as numbers: character n-grams, hashed, weighed by how rare they are, and projected to few dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from lacunar._typing import Floats
from lacunar.observed.rules import Number, Rule, floats
from lacunar.uncertainty.shift import evenly

_N_HASHES = 2**13
_N_NUMBERS = 20  # of a text
_MOST_TEXTS = 5000  # different ones, from which directions are learned
_LONGEST = 2000  # characters of a text that are read


class TextNumbers(BaseEstimator):
    """Truncated singular value decomposition of the TF-IDF of character n-grams (two to four, within words)."""

    _schema: ClassVar[dict[str, Rule]] = {
        "column_": Number(whole=True, low=0),
        "idf_": floats(_N_HASHES, low=0),
        "components_": floats("numbers", _N_HASHES),
    }

    def fit(self, texts: NDArray[np.object_], column: int, seed: int) -> TextNumbers:
        """Learn from the texts of a column (n,), "" where missing, of which two at least are different; `column` is its number in the table."""
        self.column_ = column
        different = np.array(sorted(set(texts) - {""}), dtype=object)
        counts = _hashed(different[evenly(len(different), _MOST_TEXTS)])
        self.idf_ = np.log((1.0 + counts.shape[0]) / (1.0 + np.bincount(counts.indices, minlength=_N_HASHES))) + 1.0
        n_numbers = min(_N_NUMBERS, counts.shape[0] - 1)
        self.components_ = TruncatedSVD(n_numbers, random_state=seed).fit(self._weighed(counts)).components_
        return self

    def _weighed(self, counts: Any) -> Any:
        return normalize(counts @ sp.diags_array(self.idf_))

    def transform(self, texts: NDArray[np.object_]) -> Floats:
        """Numbers (m, 20 at most) of texts (m,), NaN where missing; equal texts have equal numbers."""
        different, place = np.unique(texts.astype(str), return_inverse=True)
        numbers = np.asarray(self._weighed(_hashed(different)) @ self.components_.T, dtype=np.float64)
        numbers[different == ""] = np.nan
        return numbers[place]


def _hashed(texts: NDArray[Any]) -> Any:
    """Counts of character n-grams (m, hashes), logarithms of which tell more than themselves where texts are long."""
    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), n_features=_N_HASHES, norm=None, alternate_sign=False
    )
    counts = sp.csr_array(hashing.transform([str(text)[:_LONGEST] for text in texts]))
    counts.data = 1.0 + np.log(counts.data)
    return counts
