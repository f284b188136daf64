"""The public sets that `fetch_dataset` knows: where they come from, on what terms, and how their publisher's files are read."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
_LONGEST_WORD = 200  # characters: an array of words is as wide as its longest


def read_columns(
    raw: Sequence[bytes],
    *,
    names: str,
    target: str,
    at: int,
    drop: Sequence[int] = (),
    label: Callable[[NDArray[np.float64]], NDArray[Any]],
    task: str = "binary",
) -> Arrays:
    """Lines of numbers, "?" where missing: column `at` is the target; its rows without a value are left out."""
    rows = [line.replace(",", " ").split() for part in raw for line in part.decode("utf-8-sig").splitlines()]
    table = np.array([[np.nan if v == "?" else float(v) for v in row] for row in rows if row])
    table = table[~np.isnan(table[:, at])]
    others = [j for j in range(table.shape[1]) if j != at % table.shape[1] and j not in drop]
    return {
        "X": table[:, others],
        "y": label(table[:, at]).astype(np.int64),
        "targets": np.array([target]),
        "tasks": np.array([task]),
        "feature_names": np.array(names.split()),
    }


def read_bands(raw: Sequence[bytes]) -> Arrays:
    """Rows of 40 fields of which the last is the label; the columns of numbers, "?" where missing.

    Rows end at their label, not at the end of a line: copies differ in where lines break, and one has marks between them.
    """
    fields = [field.strip() for field in raw[0].decode("latin-1").replace("\n", ",").split(",")]
    fields = [field for field in fields if field not in {"", "|1"}]
    rows = [fields[k : k + 40] for k in range(0, len(fields), 40)]
    wrong = next((k for k, row in enumerate(rows) if len(row) != 40 or row[-1] not in {"band", "noband"}), None)
    if wrong is not None:
        raise ValueError(f"each row must have 40 fields and end with band or noband; row {wrong} is {rows[wrong]}")
    numbers = [[np.nan if row[j] == "?" else float(row[j]) for j in (15, 16, 19, *range(20, 39))] for row in rows]
    return {
        "X": np.array(numbers),
        "y": np.array([row[-1] == "band" for row in rows]).astype(np.int64),
        "targets": np.array(["band"]),
        "tasks": np.array(["binary"]),
        "feature_names": np.array(BANDS.split()),
    }


def read_movielens_100k(raw: Sequence[bytes]) -> Arrays:
    """`ml-100k.zip` of GroupLens: u.data, u.user, u.item, u.genre, u.occupation."""

    def lines(name: str, mark: str) -> list[list[str]]:
        text = archive.read(f"ml-100k/{name}").decode("latin-1")
        return [line.split(mark) for line in text.splitlines() if line.strip()]

    with zipfile.ZipFile(io.BytesIO(raw[0])) as archive:
        ratings = np.array(lines("u.data", "\t"), dtype=np.int64)
        users, items = lines("u.user", "|"), lines("u.item", "|")
        genres = sorted(((int(code), name) for name, code in lines("u.genre", "|")))
        jobs = [job for (job,) in lines("u.occupation", "|")]
    arrays = _ratings(ratings, (len(users), len(items)))
    arrays |= _people([u[1] for u in users], [u[2] for u in users], [jobs.index(u[3]) for u in users])
    return arrays | {
        "side_item_genres": np.array([item[5:] for item in items], dtype=np.int64),
        "side_genre_names": _words([name for _, name in genres]),
        "side_occupation_names": _words(jobs),
        "side_user_zip": _words([user[4] for user in users]),
        "side_item_year": np.array([int(item[2][-4:]) if item[2] else 0 for item in items]),
    }


def read_movielens_1m(raw: Sequence[bytes]) -> Arrays:
    """`ml-1m.zip` of GroupLens: ratings.dat and users.dat."""

    def lines(name: str) -> list[list[str]]:
        return [line.split("::") for line in archive.read(f"ml-1m/{name}").decode("latin-1").splitlines() if line]

    with zipfile.ZipFile(io.BytesIO(raw[0])) as archive:
        ratings, users = np.array(lines("ratings.dat"), dtype=np.int64), lines("users.dat")
    arrays = _ratings(ratings, (len(users), 3952))
    del arrays["side_time"]
    return arrays | _people([u[2] for u in users], [u[1] for u in users], [int(u[3]) for u in users])


def read_physionet(raw: Sequence[bytes]) -> Arrays:
    """Columns of measurements and the target of a prepared set of the PhysioNet/CinC Challenge 2012; empty cells are missing."""
    head, *rows = csv.reader(io.StringIO(gzip.decompress(raw[0]).decode()))
    table = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
    measured = [j for j, name in enumerate(head) if name not in PHYSIONET_OUTCOMES]
    return {
        "X": table[:, measured],
        "y": table[:, head.index(PHYSIONET_TARGET)].astype(np.int64),
        "targets": np.array([PHYSIONET_TARGET]),
        "tasks": np.array(["binary"]),
        "feature_names": np.array([head[j] for j in measured]),
    }


def _words(words: list[str]) -> NDArray[np.str_]:
    """An array of words, in which each takes as much memory as the longest."""
    longest = max(map(len, words), default=0)
    if longest > _LONGEST_WORD:
        raise ValueError(f"names must have at most {_LONGEST_WORD} characters; one has {longest}")
    return np.array(words)


def _ratings(ratings: NDArray[np.int64], shape: tuple[int, int]) -> Arrays:
    """CSR of (user, item, rating, time), both numbered from 1."""
    numbers = ratings[:, :2] - 1
    if (numbers < 0).any() or (numbers >= shape).any():
        raise ValueError(
            f"users and items must be numbered 1 to {shape[0]} and 1 to {shape[1]}; the ratings name others"
        )
    ratings = ratings[np.lexsort((ratings[:, 1], ratings[:, 0]))]
    counts = np.bincount(ratings[:, 0] - 1, minlength=shape[0])
    return {
        "indptr": np.concatenate([[0], np.cumsum(counts)]),
        "indices": ratings[:, 1] - 1,
        "values": ratings[:, 2],
        "shape": np.array(shape),
        "side_time": ratings[:, 3],
    }


def _people(age: list[str], gender: list[str], occupation: list[int]) -> Arrays:
    return {
        "targets": np.array(["age", "gender", "occupation"]),
        "tasks": np.array(["regression", "binary", "multiclass"]),
        "y": np.array(age, dtype=np.int64),
        "y_gender": np.array([int(g == "M") for g in gender]),
        "y_occupation": np.array(occupation),
    }


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
GROUPLENS = "https://files.grouplens.org/datasets/movielens/"


@dataclass(frozen=True)
class Source:
    """One set; without urls it is read from a local copy only."""

    origin: str
    terms: str
    urls: tuple[str, ...] = ()
    read: Callable[[Sequence[bytes]], Arrays] | None = None
    content: str = ""  # SHA-256 of its arrays, see `digest`
    files: tuple[str, ...] = ()  # SHA-256 of the files behind the urls, where the publisher's bytes never change


def _uci(origin: str, content: str, *paths: str, **how: object) -> Source:
    read: Callable[[Sequence[bytes]], Arrays] = partial(read_columns, **how)  # type: ignore[arg-type]
    return Source(
        f"UCI Machine Learning Repository, {origin}", "CC BY 4.0", tuple(UCI + p for p in paths), read, content
    )


HEPATITIS = """age sex steroid antivirals fatigue malaise anorexia liver_big liver_firm spleen_palpable spiders ascites varices
bilirubin alk_phosphate sgot albumin protime histology"""
WISCONSIN = """clump_thickness cell_size_uniformity cell_shape_uniformity marginal_adhesion epithelial_cell_size bare_nuclei
bland_chromatin normal_nucleoli mitoses"""
DERMATOLOGY = """erythema scaling definite_borders itching koebner_phenomenon polygonal_papules follicular_papules
oral_mucosal_involvement knee_and_elbow_involvement scalp_involvement family_history melanin_incontinence
eosinophils_in_the_infiltrate PNL_infiltrate fibrosis_of_the_papillary_dermis exocytosis acanthosis hyperkeratosis parakeratosis
clubbing_of_the_rete_ridges elongation_of_the_rete_ridges thinning_of_the_suprapapillary_epidermis spongiform_pustule
munro_microabcess focal_hypergranulosis disappearance_of_the_granular_layer vacuolisation_and_damage_of_basal_layer spongiosis
saw_tooth_appearance_of_retes follicular_horn_plug perifollicular_parakeratosis inflammatory_monoluclear_inflitrate
band_like_infiltrate age"""
HORSES = """surgery age hospital_number rectal_temperature pulse respiratory_rate temperature_of_extremities peripheral_pulse
mucous_membranes capillary_refill_time pain peristalsis abdominal_distension nasogastric_tube nasogastric_reflux
nasogastric_reflux_ph feces abdomen packed_cell_volume total_protein abdominocentesis_appearance abdomcentesis_total_protein
outcome"""
BANDS = """press unit_number plating_tank proof_cut viscosity caliper ink_temperature humidity roughness blade_pressure varnish_pct
press_speed ink_pct solvent_pct esa_voltage esa_amperage wax hardener roller_durometer current_density anode_space_ratio
chrome_content"""
CLEVELAND = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal"
PHYSIONET_TARGET = "In-hospital_death"
PHYSIONET_OUTCOMES = {"recordid", "SAPS-I", "SOFA", "Length_of_stay", "Survival", PHYSIONET_TARGET}
PHYSIONET = "PhysioNet/Computing in Cardiology Challenge 2012 (Silva, Moody, Scott, Celi and Mark, 2012), as prepared in alistairewj/challenge2012"
PHYSIONET_TERMS = "Open Data Commons Attribution 1.0: name Silva et al. (2012)"
CHALLENGE = "https://raw.githubusercontent.com/alistairewj/challenge2012/79f7b08494f95fa43b20eac3e36f424d5ee78f1d/data/PhysionetChallenge2012-"
MOVIELENS = "research use with citation of Harper and Konstan (2015), no redistribution"

SETS: dict[str, Source] = {
    "mammographic": _uci(
        "Mammographic Mass",
        "7471bf672a0eef3d2c9b57fb6cd807306f103f2a07646623b94bf19a44d9321a",
        "mammographic-masses/mammographic_masses.data",
        names="BI-RADS age shape margin density",
        target="severity",
        at=-1,
        label=lambda y: y,
    ),
    "cleveland": _uci(
        "Heart Disease, processed Cleveland data",
        "dee439494a58d93333f9db5687645374a4bcf8e25d7c8d04d0b4f3577643f35c",
        "heart-disease/processed.cleveland.data",
        names=CLEVELAND,
        target="num",
        at=-1,
        label=lambda y: y,
        task="multiclass",
    ),
    "dermatology": _uci(
        "Dermatology",
        "438e976280e0d4b5917ca60e99ebf82689dc251a9f18adda8c00a6ed3c6043ed",
        "dermatology/dermatology.data",
        names=DERMATOLOGY,
        target="disease",
        at=-1,
        label=lambda y: y - 1,
        task="multiclass",
    ),
    "hepatitis": _uci(
        "Hepatitis",
        "288781e738dd9db870ec7f5b8c7710a38d7fd127b9106120d4a1cb0ce07e710a",
        "hepatitis/hepatitis.data",
        names=HEPATITIS,
        target="lives",
        at=0,
        label=lambda y: y - 1,
    ),
    "wisconsin": _uci(
        "Breast Cancer Wisconsin (Original)",
        "b5717f28cd3d621ed9d8b396c5bd92d0c79454242f42b45158235e904b7aa2b7",
        "breast-cancer-wisconsin/breast-cancer-wisconsin.data",
        names=WISCONSIN,
        target="malignant",
        at=-1,
        drop=[0],  # an identifier
        label=lambda y: y == 4,
    ),
    "horses": _uci(
        "Horse Colic, both files",
        "d7d0ec4c44d95732930c70c5d4f5ac01f40e6523af1f99184bdf906cd896f9ec",
        "horse-colic/horse-colic.data",
        "horse-colic/horse-colic.test",
        names=HORSES,
        target="surgical_lesion",
        at=23,
        drop=[24, 25, 26, 27],  # the kind of lesion
        label=lambda y: y == 1,
    ),
    "bands": Source(
        "UCI Machine Learning Repository, Cylinder Bands; columns of numbers",
        "CC BY 4.0",
        (UCI + "cylinder-bands/bands.data",),
        read_bands,
        "953eb6d8032351677ff9311c521c56d64e186810aa620b965d45d134374fcd7d",
    ),
    "physionet2012-set-a": Source(
        f"{PHYSIONET}, set a",
        PHYSIONET_TERMS,
        (CHALLENGE + "set-a.csv.gz",),
        read_physionet,
        "c88c57b83d0e2c43670e201ab14e1952ce7dd18ea3dc131c98ab29427e8bf0ce",
        ("8f92794cb8ecc4e61ba5aea6ab4b5d983e9aa362a15d10ba41c09b86bfb09894",),
    ),
    "physionet2012-set-b": Source(
        f"{PHYSIONET}, set b",
        PHYSIONET_TERMS,
        (CHALLENGE + "set-b.csv.gz",),
        read_physionet,
        "b9a23735c12c911828256ffb13f7560f5a06ca4b3df808b1ac6dded4418e0e7d",
        ("78339c5a7f30021c44d51618df2fb64d577536f420180f39f21e87d422a709e0",),
    ),
    "movielens100k": Source(
        "GroupLens, MovieLens 100K",
        MOVIELENS,
        (GROUPLENS + "ml-100k.zip",),
        read_movielens_100k,
        "59366b93d65243215bbf1308ab526b13a7bf4d9d6e692072e861f7ed59791ac3",
        ("50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",),
    ),
    "movielens1m": Source(
        "GroupLens, MovieLens 1M",
        MOVIELENS,
        (GROUPLENS + "ml-1m.zip",),
        read_movielens_1m,
        "f17ae25e1373f847ac27971d8064e305f877ec536d4792e1678c49db6322824a",
        ("a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",),
    ),
    "marketing": Source("Elements of Statistical Learning, and KEEL", "no licence known"),
    "jester": Source("Goldberg, Roeder, Gupta and Perkins, Jester; a sample of users", "research use"),
    "jester5k": Source("Goldberg, Roeder, Gupta and Perkins, Jester; 5,000 users", "research use"),
    "books": Source("Ziegler, McNee, Konstan and Lausen, Book-Crossing; a cut", "research use"),
    "leukemia": Source("Golub et al., 1999", "cite"),
    "ctslice": Source("UCI, Relative location of CT slices; 757 of 53,500 rows", "CC BY 4.0"),
    "atp1d": Source("Mulan, Airline Ticket Price", "no licence known"),
    "karate": Source("Zachary, 1977, from M. Newman's collection", "cite"),
    "polbooks": Source("V. Krebs, from M. Newman's collection", "cite"),
    "polblogs": Source("Adamic and Glance, 2005, from M. Newman's collection", "cite"),
    "email_eu": Source("SNAP, email-Eu-core", "cite"),
    "cora": Source("LINQS, Cora", "cite"),
    "senate90": Source("Voteview, roll calls of the 90th Senate", "cite"),
    "senate106": Source("Voteview, roll calls of the 106th Senate", "cite"),
    "airquality": Source("UCI, Air Quality", "CC BY 4.0"),
}
