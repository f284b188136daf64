"""The package as shipped: one version, its stubs, a light import, an honest `show_config`."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import lacunar
from lacunar import _core, _linalg

ROOT = Path(__file__).parents[2]
INSTALLED = Path(lacunar.__file__).parent


@pytest.fixture(scope="module")
def project():
    file = ROOT / "pyproject.toml"
    if not file.is_file():
        pytest.skip("pyproject.toml is not beside the tests")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def test_one_version(project):
    version = project["project"]["version"]
    assert lacunar.__version__ == _core.__version__ == metadata.version("lacunar") == version
    sources = [ROOT / f for f in ("CMakeLists.txt", "python/lacunar/__init__.py")]
    literals = [file.name for file in sources if file.is_file() and version in file.read_text()]
    assert not literals, "the version is written in pyproject.toml only"


def test_changelog_knows_this_version():
    changelog = ROOT / "CHANGELOG.md"
    assert re.search(rf"^## \[?{re.escape(lacunar.__version__)}\b", changelog.read_text(encoding="utf-8"), re.MULTILINE)


def test_public_names_exist():
    assert len(set(lacunar.__all__)) == len(lacunar.__all__)
    for name in lacunar.__all__:
        assert getattr(lacunar, name).__doc__, name


@pytest.mark.parametrize("module", [_core, _linalg], ids=lambda m: m.__name__)
def test_stub_names_every_compiled_function(module):
    name = module.__name__.rpartition(".")[2]
    assert (INSTALLED / "py.typed").is_file()
    tree = ast.parse((INSTALLED / f"{name}.pyi").read_text(encoding="utf-8"))
    promised = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    compiled = {n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))}
    assert compiled == promised


def test_import_adds_no_heavy_package():
    heavy = "matplotlib", "pandas", "polars", "pyarrow", "rich"
    first = (
        "import sys, sklearn.utils.validation, sklearn.base"  # scikit-learn itself imports pandas where it is installed
    )
    code = f"{first}; before = set(sys.modules); import lacunar; print(*((set(sys.modules) - before) & set({heavy})))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=INSTALLED.root)
    assert run.stdout.split() == []


def test_show_config(capsys):
    lacunar.show_config()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.split()[1:])
    assert shown["lacunar"] == lacunar.__version__
    assert shown["numpy"] == metadata.version("numpy")
    assert "compiler" in shown


def test_command_and_module_are_the_same(tmp_path):
    def said(*command):
        run = subprocess.run([*command, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
        return run.returncode, run.stdout

    script = Path(sys.executable).with_name("lacunar.exe" if sys.platform == "win32" else "lacunar")
    if not script.is_file():
        pytest.skip("the lacunar command is not installed beside this Python")
    assert said(str(script)) == said(sys.executable, "-m", "lacunar")
    assert said(sys.executable, "-m", "lacunar")[0] == 0


def test_sdist_carries_what_a_build_needs(project):
    settings = project["tool"]["scikit-build"]["sdist"]
    assert {"/cpp", "/src", "/tests", "/bench"} <= set(settings["include"])
    # A pattern without the leading slash matches at any depth: "src" brought compiled objects in from build/.
    assert all(pattern.startswith("/") for pattern in [*settings["include"], *settings["exclude"]])
    excluded = {pattern.split("/")[1] for pattern in settings["exclude"]}
    assert not excluded & {"cpp", "src", "python", "CMakeLists.txt", "LICENSE"}


def test_oldest_versions_are_those_promised(project):
    pinned = ROOT / ".ci" / "oldest.txt"
    if not pinned.is_file():
        pytest.skip("the constraint file is not beside the tests")
    lines = [line.split("==") for line in pinned.read_text(encoding="utf-8").splitlines() if "==" in line]
    extras = project["project"]["optional-dependencies"]
    promised = [
        *project["project"]["dependencies"],
        *(line for name in ("cli", "plot", "frames", "distributed", "test") for line in extras[name]),
    ]
    floors = dict(re.sub(r"\[.*]", "", line).split(">=") for line in promised if ">=" in line)
    oldest = dict(lines)  # and what others' old releases need besides
    assert floors.keys() <= oldest.keys()
    for name, floor in floors.items():
        assert oldest[name] == floor or oldest[name].startswith(f"{floor}."), name


@pytest.mark.parametrize("name", ["compiled.txt", "machines.txt"])
def test_lists_of_tests_name_files(name):
    listed = ROOT / ".ci" / name
    if not listed.is_file():
        pytest.skip("the list is not beside the tests")
    files = listed.read_text(encoding="utf-8").split()
    assert len(files) > 10
    assert not [file for file in files if not (ROOT / file).is_file()]
    assert len(set(files)) == len(files)


def test_families_are_there_on_first_use():
    code = "import lacunar, sys; a = 'lacunar.lowrank' in sys.modules; lacunar.lowrank.POPCA; print(a, 'completion' in dir(lacunar))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        lacunar.nothing_of_the_kind  # noqa: B018


def test_every_family_is_listed():
    folder = Path(lacunar.__file__).parent
    found = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(lacunar._FAMILIES) == {name for name in found if not name.startswith("_") and name != "cli"}
