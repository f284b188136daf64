"""Seconds of one fit, as docs/measured/which-learner.md has them: median of the tables (dot) up to the slowest (line)."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

page = (Path(__file__).parents[1] / "measured" / "which-learner.md").read_text(encoding="utf-8")
table = re.search(r"^\| CPU seconds of one fit \|.*?\n\n", page, re.M | re.S)[0].splitlines()
head, _, *rows = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in table if line]
median, largest = ([float(cell) for cell in row[1:]] for row in rows[:2])
order = sorted(range(len(median)), key=median.__getitem__, reverse=True)
ax = plt.subplots(figsize=(6, 3.4), layout="constrained")[1]
for place, j in enumerate(order):
    colour = "#0b7a75" if head[j + 1].startswith("Lacunar") else "#9aa5b1"
    ax.plot([median[j], largest[j]], [place, place], color=colour, lw=2)
    ax.plot(median[j], place, "o", color=colour, ms=9)
    ax.text(median[j] * 0.8, place, f"{median[j]:.2g}", ha="right", va="center", fontsize=10)
ax.set_yticks(range(len(order)), [head[j + 1] for j in order])
ax.set(xscale="log", xlim=(0.03, 20), xlabel="CPU seconds of one fit")
