"""Measurements: `hot` (tracked loops), `pages` (what writes a record), `papers` (figures of the four papers), `tools` (records, counts, comparisons)."""
