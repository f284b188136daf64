"""
Who will like which film?
=========================

Answers come one by one; every one is predicted before it is seen, new people and films at any time. One answer in ten is a whim, so
.1 is the floor; knowing the genres saves nearly half of the mistakes.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lacunar.completion import Features, Mix, OnlineMatrixClassifier
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.persistence import load_model, save_model
from lacunar.plotting import RegretDisplay

GENRES = ("war", "love", "space")


def answers(n, seed=0):
    """People have a favourite genre, and a mood: one answer in ten is the opposite of what their taste says."""
    rng = np.random.default_rng(seed)
    taste, genre = rng.integers(3, size=200), rng.integers(3, size=80)
    people, films = rng.integers(200, size=n), rng.integers(80, size=n)
    likes = (taste[people] == genre[films]) ^ (rng.random(n) < 0.1)
    return [f"person {k}" for k in people], [f"film {k}" for k in films], likes.tolist(), taste, genre


def main():
    people, films, likes, taste, genre = answers(6000)
    known = Features({"genre": [GENRES[g] for g in genre]}, ids=[f"film {k}" for k in range(80)])
    learners = {
        "no side information": OnlineMatrixClassifier(),
        "genres": OnlineMatrixClassifier(cols=Mix(known)),
        "the learner of the paper": MatrixExponentiatedGradient(cols=Mix(known)),
    }
    wrong = {}
    for name, model in learners.items():
        score = model.score_stream(people, films, likes, comparator="majority")
        wrong[name] = np.diff(score.running_mistakes, prepend=0)
        print(f"{name:>24s}: {score.error:.1%} wrong, log loss {score.loss:.3f}")
    ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")[1]
    RegretDisplay(dict(reversed(wrong.items()))).plot(ax).ax_.set(ylim=(0, 0.5), xlabel="answers seen")
    plt.show()

    model = learners["genres"]
    model.add_col("film 80", {"genre": "space"})
    for fan in (f"person {(taste == k).argmax()}" for k in (2, 0)):
        print(f"{fan} likes it with probability {model.predict_proba_one(fan, 'film 80')[True]:.2f}")
    model.learn_one("someone new", "film 80", True)
    file = Path(tempfile.mkdtemp()) / "likes.lacunar"
    save_model(model, file)
    print("after a restart:", load_model(file).predict_one("someone new", "film 80"))


if __name__ == "__main__":
    main()
