"""`fetch_dataset`: local copies, downloads behind a checksum, and what is said when there is neither."""

import gzip
import hashlib
import io
import os
import urllib.error
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from lacunar.datasets import dataset_names, fetch, fetch_dataset, load_patients, sets
from lacunar.datasets.sets import SETS

real = pytest.mark.skipif("LACUNAR_DATA" not in os.environ, reason="no local copies of the public sets")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, no LACUNAR_DATA, no network."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("LACUNAR_DATA", raising=False)

    def refuse(url, timeout):
        raise urllib.error.URLError("no network here")

    monkeypatch.setattr(fetch.urllib.request, "urlopen", refuse)
    return tmp_path


def serve(monkeypatch, files):
    """Answers to urls, by the end of their paths."""
    asked = []

    def answer(url, timeout):
        asked.append(url)
        return io.BytesIO(next(body for name, body in files.items() if url.endswith(name)))

    monkeypatch.setattr(fetch.urllib.request, "urlopen", answer)
    return asked


def accept(monkeypatch, name, raw):
    """Let the digest of this content be the registered one."""
    source = SETS[name]
    monkeypatch.setitem(SETS, name, replace(source, files=(), content=fetch.digest(source.read(raw))))


def table(path, name, X=((1.0, np.nan), (3.0, 4.0))):
    path.mkdir(exist_ok=True)
    arrays = {"X": np.array(X), "y": np.array([0, 1]), "targets": np.array(["t"]), "tasks": np.array(["binary"])}
    np.savez(path / f"{name}.npz", **arrays, feature_names=np.array([b"a", "\u00e9".encode()]))


HEPATITIS = (
    b"2,30,2,1,2,2,2,2,1,2,2,2,2,2,1.00,85,18,4.0,?,1\r\n1,50,1,1,2,1,2,2,1,2,2,2,2,2,0.90,135,42,3.5,?,1\r\n\r\n"
)


def test_download_is_parsed_checked_and_kept(home, monkeypatch):
    accept(monkeypatch, "hepatitis", [HEPATITIS])
    asked = serve(monkeypatch, {"hepatitis.data": HEPATITIS})
    for _ in range(2):
        X, y = fetch_dataset("hepatitis", return_X_y=True)
        assert X.shape == (2, 19)
        assert np.isnan(X[:, 17]).all()
        np.testing.assert_array_equal(X[0, :3], [30, 2, 1])
        np.testing.assert_array_equal(y, [1, 0])
    assert len(asked) == 1
    assert [p.name for p in (home / "lacunar_data").iterdir()] == ["hepatitis.npz"]


def test_data_home_is_where_downloads_go(home, monkeypatch):
    accept(monkeypatch, "hepatitis", [HEPATITIS])
    serve(monkeypatch, {"hepatitis.data": HEPATITIS})
    found = fetch_dataset("hepatitis", data_home=home / "mine")
    assert (home / "mine" / "hepatitis.npz").is_file()
    assert not (home / "lacunar_data").exists()
    assert (found.task, found.targets) == ("binary", {"lives": "binary"})
    assert found.feature_names[0] == "age"
    assert len(found.feature_names) == 19
    assert "UCI" in found.origin


def test_local_copies_come_first(home, monkeypatch):
    table(home / "named", "jester")
    table(home / "given", "jester", X=((9.0, 9.0), (9.0, 9.0)))
    monkeypatch.setenv("LACUNAR_DATA", str(home / "named"))
    assert np.isnan(fetch_dataset("jester").data[0, 1])
    assert fetch_dataset("jester").feature_names == ["a", "\u00e9"]
    assert fetch_dataset("jester", data_home=home / "given").data.min() == 9


def test_both_files_of_horses_and_dropped_columns(home, monkeypatch):
    row = b"2 1 530101 38.50 66 28 3 3 ? 2 5 4 4 ? ? ? 3 5 45.00 8.40 ? ? 2 %s 11300 00000 00000 2 \n"
    files = {"horse-colic.data": row % b"2", "horse-colic.test": row % b"1" + row % b"?"}
    accept(monkeypatch, "horses", list(files.values()))
    serve(monkeypatch, files)
    X, y = fetch_dataset("horses", return_X_y=True)
    assert X.shape == (2, 23)
    np.testing.assert_array_equal(y, [0, 1])
    assert X[0, 22] == 2


def bands_row(label, speed=b"30"):
    """40 fields: date, names, fifteen columns, of which two of numbers, and so on; what is no number is a word."""
    fields = [b"19910108"] + [b"word"] * 38 + [label]
    for j in (15, 16, 19, *range(20, 39)):
        fields[j] = b"1.5"
    fields[20], fields[21] = speed, b"?"
    return b",".join(fields)


def test_bands_rows_end_at_their_label(home, monkeypatch):
    rows = [bands_row(b"band"), bands_row(b"noband", b"-2"), bands_row(b"band")]
    broken = rows[2][:40] + rows[2][40:].replace(b",1.5,", b",\n1.5,", 1)
    raw = rows[0] + b"\n" + rows[1] + b",|1\n" + broken + b"\n"
    accept(monkeypatch, "bands", [raw])
    serve(monkeypatch, {"bands.data": raw})
    X, y = fetch_dataset("bands", return_X_y=True)
    assert X.shape == (3, 22)
    np.testing.assert_array_equal(y, [1, 0, 1])
    np.testing.assert_array_equal(X[:, 3], [30, -2, 30])
    assert np.isnan(X[:, 4]).all()
    assert not np.isnan(X[:, 5:]).any()


def test_a_row_of_bands_that_is_cut_short_is_named():
    with pytest.raises(ValueError, match="each row must have 40 fields and end with band or noband; row 1 is"):
        sets.read_bands([bands_row(b"band") + b"\n" + bands_row(b"noband")[9:] + b"\n"])


def movielens(kind):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        if kind == "1m":
            archive.writestr("ml-1m/ratings.dat", "2::5::4::7\n1::3952::1::8\n1::2::3::9\n")
            archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        else:
            archive.writestr("ml-100k/u.data", "2\t1\t4\t7\n1\t2\t3\t9\n")
            archive.writestr("ml-100k/u.user", "1|24|M|writer|85711\n2|53|F|other|94043\n")
            archive.writestr("ml-100k/u.item", "1|A (1995)|01-Jan-1995||u|0|1\n2|caf\xe9||| |1|0\n".encode("latin-1"))
            archive.writestr("ml-100k/u.genre", "unknown|0\nAction|1\n\n")
            archive.writestr("ml-100k/u.occupation", "other\nwriter\n")
    return memory.getvalue()


def test_movielens_100k(home, monkeypatch):
    accept(monkeypatch, "movielens100k", [movielens("100k")])
    serve(monkeypatch, {"ml-100k.zip": movielens("100k")})
    found = fetch_dataset("movielens100k")
    np.testing.assert_array_equal(found.data.toarray(), [[0, 3], [4, 0]])
    np.testing.assert_array_equal(found.target, [24, 53])
    np.testing.assert_array_equal(fetch_dataset("movielens100k", target="gender").target, [1, 0])
    np.testing.assert_array_equal(fetch_dataset("movielens100k", target="occupation").target, [1, 0])
    np.testing.assert_array_equal(fetch_dataset("movielens100k", target="all").target, [[24, 1, 1], [53, 0, 0]])
    np.testing.assert_array_equal(found.side["item_genres"], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(found.side["item_year"], [1995, 0])
    np.testing.assert_array_equal(found.side["time"], [9, 7])
    assert found.side["genre_names"].tolist() == ["unknown", "Action"]


def test_movielens_1m(home, monkeypatch):
    accept(monkeypatch, "movielens1m", [movielens("1m")])
    serve(monkeypatch, {"ml-1m.zip": movielens("1m")})
    found = fetch_dataset("movielens1m", target="gender")
    assert found.data.shape == (2, 3952)
    np.testing.assert_array_equal(found.data.indices, [1, 3951, 4])
    np.testing.assert_array_equal(found.data.data, [3, 1, 4])
    np.testing.assert_array_equal(found.target, [0, 1])
    assert found.task == "binary"


PATIENTS = b"recordid,Survival,In-hospital_death,Age,Weight_first\n7,-1,0,54.0,\n8,3,1,,70.5\n"


@pytest.fixture
def prepared(home, monkeypatch):
    """A set of two patients, and its checksums."""
    raw = gzip.compress(PATIENTS)
    content = fetch.digest(sets.read_physionet([raw]))
    files = (hashlib.sha256(raw).hexdigest(),)
    monkeypatch.setitem(SETS, "physionet2012-set-a", replace(SETS["physionet2012-set-a"], files=files, content=content))
    return raw


def test_patients_without_what_was_known_later(prepared, home, monkeypatch):
    serve(monkeypatch, {"set-a.csv.gz": prepared})
    found = fetch_dataset("physionet2012-set-a", as_frame=True)
    assert found.data.columns.tolist() == found.feature_names == ["Age", "Weight_first"]
    np.testing.assert_array_equal(found.data, [[54, np.nan], [np.nan, 70.5]])
    np.testing.assert_array_equal(found.target, [0, 1])
    assert "Attribution" in found.terms
    assert "Silva" in found.origin


def test_a_publishers_own_file_is_a_local_copy(prepared, home):
    (home / "lacunar_data").mkdir()
    copy = home / "lacunar_data" / "physionet2012-set-a.csv.gz"
    copy.write_bytes(prepared)
    assert fetch_dataset("physionet2012-set-a", download_if_missing=False).data.shape == (2, 2)
    copy.write_bytes(prepared[:-1])
    with pytest.raises(ValueError, match=r"physionet2012-set-a: .*set-a.csv.gz should have SHA-256"):
        fetch_dataset("physionet2012-set-a")


def test_frames_need_names(home):
    table(home / "lacunar_data", "jester")
    assert fetch_dataset("jester", as_frame=True).data.shape == (2, 2)
    np.savez(home / "lacunar_data" / "jester.npz", X=np.eye(2), y=[0, 1], targets=["t"], tasks=["binary"])
    with pytest.raises(ValueError, match="as_frame must be False for jester"):
        fetch_dataset("jester", as_frame=True)


def test_the_patients_of_the_package_are_the_first_of_the_set():
    found = load_patients(as_frame=True)
    assert found.data.shape == (400, 114)
    assert 0.2 < found.data.isna().mean().mean() < 0.3
    assert found.target.sum() == 52
    frame = pd.read_csv(found.filename)
    assert frame.columns[0] == "In-hospital_death"
    pd.testing.assert_frame_equal(frame.iloc[:, 1:].astype(float), found.data)
    assert "Silva" in (Path(found.filename).parent / "patients.txt").read_text()


@pytest.mark.skipif("LACUNAR_DATA" not in os.environ, reason="no local copies of the public sets")
def test_the_patients_of_the_package_are_those_of_the_publisher():
    if not (Path(os.environ["LACUNAR_DATA"]) / "physionet2012-set-a.csv.gz").is_file():
        pytest.skip("no local copy of the set")
    whole, ours = fetch_dataset("physionet2012-set-a"), load_patients()
    np.testing.assert_array_equal(whole.data[:400], ours.data)
    np.testing.assert_array_equal(whole.target[:400], ours.target)
    assert fetch_dataset("physionet2012-set-b").data.shape == whole.data.shape == (4000, 114)


def test_changed_content_is_refused_and_not_kept(home, monkeypatch):
    serve(monkeypatch, {"hepatitis.data": HEPATITIS, "ml-1m.zip": movielens("1m")})
    with pytest.raises(ValueError, match=r"hepatitis: the content behind .*hepatitis.data should have SHA-256"):
        fetch_dataset("hepatitis")
    with pytest.raises(ValueError, match=r"movielens1m: .*ml-1m.zip should have SHA-256 a6898adb.*got"):
        fetch_dataset("movielens1m")
    assert not (home / "lacunar_data").exists()


def test_offline(home):
    with pytest.raises(
        OSError, match=r"cleveland could not be downloaded from https.*no network.*Put cleveland.npz.*data_home"
    ):
        fetch_dataset("cleveland")
    with pytest.raises(FileNotFoundError, match=r"cleveland is not in .*lacunar_data. Put cleveland.npz into a folder"):
        fetch_dataset("cleveland", download_if_missing=False)


def test_sets_without_download_say_so(home):
    with pytest.raises(FileNotFoundError, match=r"books \(Ziegler.*local copy only.*LACUNAR_DATA"):
        fetch_dataset("books")
    assert "books" in dataset_names()


def test_unknown_names(home):
    with pytest.raises(ValueError, match=r"name must be one of mammographic, .*; got 'bandits'"):
        fetch_dataset("bandits")
    table(home / "x", "jester")
    with pytest.raises(ValueError, match="target of jester must be one of t or 'all'; got 'age'"):
        fetch_dataset("jester", target="age", data_home=home / "x")


def test_digest_is_of_content_not_of_dtype():
    arrays = {
        "X": np.array([[1.0, np.nan]]),
        "y": np.array([1]),
        "targets": np.array(["t"]),
        "tasks": np.array(["binary"]),
    }
    same = {**arrays, "X": arrays["X"].astype(np.float32), "y": np.array([1], dtype=np.int8)}
    other = {**arrays, "X": np.array([[1.0, 2.0]])}
    assert fetch.digest(arrays) == fetch.digest(same) != fetch.digest(other)


@real
@pytest.mark.parametrize("name", dataset_names())
def test_local_copies_are_what_is_registered(name):
    if not (Path(os.environ["LACUNAR_DATA"]) / f"{name}.npz").is_file():
        pytest.skip(f"no local copy of {name}")
    found = fetch_dataset(name, data_home=os.environ["LACUNAR_DATA"])
    assert found.data.shape[0] == len(found.target)
    assert found.data.dtype == np.float64
    assert len(found.feature_names) in {0, found.data.shape[1]}
    assert not np.isinf(found.data.data if sp.issparse(found.data) else found.data).any()
    source = SETS[name]
    if source.content and name != "horses":  # whose copy there rounds the identifier
        with np.load(Path(os.environ["LACUNAR_DATA"]) / f"{name}.npz", allow_pickle=False) as file:
            assert fetch.digest({key: file[key] for key in file.files}) == source.content


def test_one_long_word_does_not_make_all_words_as_wide():
    with pytest.raises(ValueError, match="at most 200 characters; one has 201"):
        sets._words(["writer"] * 3 + ["w" * 201])
