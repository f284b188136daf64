"""Instructions of every counted case, today and by release, over those of the first release that counted it."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

bench = Path(__file__).parents[2] / "bench"
kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((bench / "releases").glob("*.json"))]
compiler = kept[0]["compiler"]
today = json.loads((bench / "tools" / "instructions.json").read_text(encoding="utf-8"))[compiler]
counts = [each["instructions"] for each in kept if each["compiler"] == compiler] + [today]
first = {name: n for each in reversed(counts) for name, n in each.items()}
order = sorted(first, key=lambda name: (today.get(name, 0) / first[name], name))
ax = plt.subplots(figsize=(6, 0.19 * len(order) + 0.8), layout="constrained")[1]
ax.axvline(1, color="#9aa5b1", lw=1)
for step, each in enumerate(counts):
    last = step == len(counts) - 1
    places = [k for k, name in enumerate(order) if name in each]
    ratios = [each[order[k]] / first[order[k]] for k in places]
    ax.plot(ratios, places, "o", color="#0b7a75" if last else "#9aa5b1", ms=6 if last else 4)
ax.set_yticks(range(len(order)), order, fontsize=7)
ax.set(ylim=(-1, len(order)), xlabel="instructions today over those of the first release")
low, high = ax.get_xlim()
ax.set_xlim(min(low, 0.9), max(high, 1.1))
