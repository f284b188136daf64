"""What the four papers print: their algorithms to the letter, the methods they compare with, their bounds, their synthetic worlds.

`karma` (Hazan, Livni and Mansour 2015), `slrm` (Ganti and Willett 2015), `completion` (Herbster, Pasteris and Tse 2020) and `subspace`
(Gonen, Rosenbaum, Eldar and Shalev-Shwartz 2016). Parameters have the papers' names, and everything runs on the core that the
learners of the families run on. To predict on a table of your own, take those: their defaults depart from the papers where
something else predicts better.
"""
