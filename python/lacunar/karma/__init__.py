"""KARMA: kernel learning from rows with holes (Hazan, Livni, Mansour 2015)."""
