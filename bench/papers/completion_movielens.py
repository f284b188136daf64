"""Will they like it? MovieLens-100K as a stream: `LACUNAR_DATA=... python bench/papers/completion_movielens.py`.

The 100,000 ratings in the order of time, like = 4 stars or more, each predicted before it is learned (progressive validation). Side
information: genres and year of films, age, gender and occupation of users. Beside it, on the same stream, the majority so far, the
film's mean so far, and an online bias model (logistic: overall + user + film) at several learning rates, the best of which is
chosen in hindsight. Several configurations run on one stream: take differences below .005 as noise.
"""

import argparse
import os
import sys
import time

import numpy as np

from lacunar.completion import Features, Mix, OnlineMatrixClassifier
from lacunar.papers.completion import MatrixExponentiatedGradient

RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6)


def movielens():
    """Users and films of the ratings in order of time, whether they were liked, and what is known of both."""
    sys.path.insert(0, os.environ["LACUNAR_DATA"])
    from load import table

    found = table("movielens100k")
    ratings, side = found.X.tocoo(), found.side
    target = {name: values for name, (values, _) in found.targets.items()}
    users = {
        "age": target["age"],
        "gender": target["gender"].astype(bool),
        "occupation": side["occupation_names"][target["occupation"]],
    }
    year = np.where(side["item_year"] > 0, side["item_year"], np.nan).astype(float)
    films = {str(name): side["item_genres"][:, k].astype(bool) for k, name in enumerate(side["genre_names"])}
    order = np.argsort(side["time"], kind="stable")
    return ratings.row[order], ratings.col[order], ratings.data[order] >= 4, users, films | {"year": year}


def sides(users, films, info, const, own):
    return {
        "rows": Mix(Features(users), info=info, const=const, own=own),
        "cols": Mix(Features(films), info=info, const=const, own=own),
    }


def configurations(users, films):
    alone = MatrixExponentiatedGradient
    return {
        "defaults": alone(**sides(users, films, 0.6, 0.2, 0.2)),
        "own .4, scale .3": alone(**sides(users, films, 0.4, 0.2, 0.4), step_scale=0.3),
        "own .5, scale .3": alone(**sides(users, films, 0.3, 0.2, 0.5), step_scale=0.3),
        "own .5, scale .7": alone(**sides(users, films, 0.3, 0.2, 0.5), step_scale=0.7),
        "no side information": alone(step_scale=0.3),
        "pool": OnlineMatrixClassifier(**sides(users, films, 0.6, 0.2, 0.2)),
    }


def bias_model(i, j, y, rate, shrink=0.02):
    """Probabilities of a logistic model overall + user + film, learned one rating after the other."""
    overall, user, film, p = 0.0, np.zeros(i.max() + 1), np.zeros(j.max() + 1), np.empty(len(y))
    for t, (a, b, liked) in enumerate(zip(i.tolist(), j.tolist(), y.tolist(), strict=True)):
        p[t] = 1 / (1 + np.exp(-(overall + user[a] + film[b])))
        error = liked - p[t]
        overall += 0.01 * error
        user[a] += rate * (error - shrink * user[a])
        film[b] += rate * (error - shrink * film[b])
    return p


def running_means(keys, y):
    """Whether most of the earlier labels of the same key were positive (all labels where there were none)."""
    counts, guess, total = {}, np.empty(len(y), dtype=bool), [0, 0]
    for t, (key, liked) in enumerate(zip(keys.tolist(), y.tolist(), strict=True)):
        positive, seen = counts.get(key, (0, 0))
        positive, seen = (positive, seen) if seen else total
        guess[t] = 2 * positive >= seen
        counts[key] = (counts.get(key, (0, 0))[0] + liked, counts.get(key, (0, 0))[1] + 1)
        total = [total[0] + liked, total[1] + 1]
    return guess


def log_loss(p, y):
    return -np.log(np.maximum(np.where(y, p, 1 - p), 1e-15)).mean()


def report(name, wrong, p=None, y=None, seconds=None):
    half = len(wrong) // 2
    parts = [
        f"error {wrong.mean():.4f}",
        f"first 20k {wrong[:20_000].mean():.4f}",
        f"second half {wrong[half:].mean():.4f}",
    ]
    if p is not None:
        parts.append(f"log loss {log_loss(p, y):.4f} (second half {log_loss(p[half:], y[half:]):.4f})")
    print(f"{name:>24s}: {', '.join(parts)}" + (f", {seconds:.0f} s CPU" if seconds else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", help="names of configurations")
    options = parser.parse_args()
    if not os.environ.get("LACUNAR_DATA"):
        sys.exit("LACUNAR_DATA is not set: no real ratings to read")
    *stream, users, films = movielens()
    i, j, y = (each[: options.trials] for each in stream)
    report("majority so far", running_means(np.zeros(len(y), dtype=int), y) != y)
    report("film's mean so far", running_means(j, y) != y)
    for rate in RATES:
        p = bias_model(i, j, y, rate)
        report(f"bias model, rate {rate}", (p >= 0.5) != y, p, y)
    for name, learner in configurations(users, films).items():
        if options.only and name not in options.only:
            continue
        start = time.process_time()
        score = learner.score_stream(i, j, y)
        wrong = np.diff(score.running_mistakes, prepend=0)
        report(name, wrong, score.probabilities, y, time.process_time() - start)


if __name__ == "__main__":
    main()
