"""Who may depend on whom: the layering of the code base, read from the sources with `ast` and regular expressions."""

import ast
import re
from functools import cache, wraps
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "lacunar"
if not PACKAGE.is_dir():
    pytest.skip("the sources are not beside the tests", allow_module_level=True)

SOURCES = sorted(PACKAGE.rglob("*.py"))
CPP = sorted([*(ROOT / "cpp").rglob("*.[ch]pp"), *(ROOT / "src").rglob("*.[ch]pp")])


# Layers from the bottom, by first level below lacunar; a module imports from lower layers and from its own folder only.
MACHINE = {"_config", "_random", "_threads", "_log", "_typing", "_state", "_lock"}
BASE = {"encode", "explanation", "kernels"}
BETWEEN = {"uncertainty"}  # stands on families, and the one learner on it
ABOVE = {"impute", "learner", "model_selection", "persistence"}  # which stand on several families
FRONTS = {"plotting", "cli", "comparison", "distributed", "datasets"}  # on everything, inner modules included
PAPERS = {"papers"}  # what the papers print, on everything below; nothing imports it
TOP = {"__init__", "__main__"}
COMPILED = {"_core", "_linalg"}


def name_of(path: Path) -> str:
    """`karma` for karma.py as for karma/_ridge.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def of_every(paths):
    """Makes a test of one file a test of all of them, which names those that fail and says why."""

    def wrap(test):
        @wraps(test, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        def whole():
            failed = {}
            for path in paths:
                try:
                    test(path)
                except AssertionError as error:
                    failed[label(path)] = str(error)
            assert not failed

        del whole.__wrapped__  # whose parameter pytest would take for a fixture
        return whole

    return wrap


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> set[str]:
    """Dotted names a module imports, functions' own imports included; `from a import b` counts as a.b."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def lacunar_imports(path: Path) -> list[list[str]]:
    named = [name.split(".")[1:] for name in imports_of(path) if name.split(".")[0] == "lacunar"]
    return [parts for parts in named if parts and parts[0] not in COMPILED]


def included(path: Path) -> list[str]:
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE)


def code_of(path: Path) -> str:
    """C++ without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def private(parts: list[str]) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def inside(parts: list[str]) -> bool:
    """A name of a module inside a family: public is what the family exports, and a module that lists its names in `__all__`."""
    module = PACKAGE.joinpath(*parts[:2]).with_suffix(".py")
    return len(parts) > 2 and module.is_file() and "__all__" not in module.read_text(encoding="utf-8")


@of_every(CPP)
def test_cpp_headers(path):
    headers = included(path)
    if label(path).startswith("cpp/"):
        banned = [h for h in headers if re.search(r"python|pybind11|numpy|cblas|lapack", h, re.IGNORECASE)]
        assert not banned, "the core knows no Python and calls no BLAS"
        foreign = [h for h in headers if "." in h and not re.match(r"lacunar/|table\.hpp$|[a-z0-9_]+\.inc$", h)]
        intrinsics = {"immintrin.h", "arm_neon.h", "math.h"} if "kernels" in path.parts else {"immintrin.h", "cpuid.h"}
        assert set(foreign) <= intrinsics, "the core uses the standard library only"
    if "kernels" in path.parts:
        assert {h for h in headers if "." not in h} <= {"cstddef", "cstdint"}, "kernels use no std headers"
        used = set(re.findall(r"\bstd::(\w+)", code_of(path)))
        assert {u for u in used if not u.endswith("_t")} <= {"byte"}, "kernels share no inline code: no std:: templates"


@of_every(CPP)
def test_only_parallel_makes_threads(path):
    # bind_system.cpp reports hardware_concurrency() for show_config and starts nothing.
    if path.name not in {"parallel.hpp", "bind_system.cpp"}:
        assert not re.search(r"std::(j?thread(?!::id)|async)\b|#\s*pragma\s+omp|pthread_create", code_of(path))


def test_linalg_does_not_know_the_core():
    for path in (ROOT / "src" / "linalg").rglob("*.p[yx][xdi]"):
        assert not re.search(r"lacunar/|\.hpp|cdef extern from \"(?!<)", path.read_text(encoding="utf-8")), label(path)


NAMES = {name_of(path) for path in SOURCES}
# Arithmetic that two families share lies below them, in private modules; every other folder is a family.
SHARED = {name for name in NAMES if name.startswith("_")} - MACHINE - TOP
FAMILIES = NAMES - MACHINE - SHARED - BASE - BETWEEN - ABOVE - FRONTS - PAPERS - TOP - {"observed"}
LAYERS = [MACHINE, {"observed"}, SHARED, BASE, FAMILIES, BETWEEN, ABOVE, FRONTS, PAPERS, TOP]


def layer(name: str) -> int:
    return next(k for k, names in enumerate(LAYERS) if name in names)


def test_families_are_folders():
    assert not {name for name in FAMILIES if not (PACKAGE / name).is_dir()}


def test_nothing_imports_what_the_papers_print():
    outside = [path for path in SOURCES if name_of(path) not in PAPERS]
    assert not [label(path) for path in outside for parts in lacunar_imports(path) if parts[0] in PAPERS]


@of_every(SOURCES)
def test_imports_go_down(path):
    """To lower layers and to the own folder; what machine, shared arithmetic and fronts consist of may know one another."""
    me, others = name_of(path), {parts[0] if parts[0] in NAMES else "__init__" for parts in lacunar_imports(path)}
    one_another = next((names for names in (MACHINE, SHARED, FRONTS) if me in names), set())
    root = {"__init__"} if me in FRONTS | ABOVE | TOP else set()  # by which users come
    down = {name for name in others - {"__init__"} if layer(name) < layer(me)}
    assert others <= down | one_another | root | {me}


# -- cycles -------------------------------------------------------------------------------------------------------------


def module_of(path: Path) -> str:
    return ".".join(("lacunar", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def graph() -> dict[str, set[str]]:
    """Which module names which in an import, those for types only and those inside functions included."""
    modules = {module_of(path): path for path in SOURCES}
    edges: dict[str, set[str]] = {}
    for module, path in modules.items():
        named = {".".join(("lacunar", *parts)) for parts in lacunar_imports(path)}
        named = {name if name in modules else name.rpartition(".")[0] for name in named}
        edges[module] = {name for name in named if name in modules} - {module}
    return edges


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of more than one module: those that reach one another."""

    def reached(start: str) -> set[str]:
        seen, left = set(), [start]
        while left:
            new = edges[left.pop()] - seen
            seen |= new
            left.extend(new)
        return seen

    reach = {module: reached(module) for module in edges}
    found = {frozenset(other for other in reach[module] if module in reach[other]) for module in edges}
    return [set(each) for each in found if each]


def test_cycles_are_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    assert not cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_no_import_cycle():
    """None at run time and none by types."""
    assert not cycles(graph())


# -- the door -----------------------------------------------------------------------------------------------------------

# What checks tables and labels, and phrases what is wrong with them.
CHECKERS = {"check_array", "check_X_y", "column_or_1d", "validate_data"}
DOOR = {"observed/door.py", "observed/contract.py"}
AT_THE_DOOR = {"encode.py": "takes tables of text, which no learner does"}


@of_every(SOURCES)
def test_only_the_door_checks_tables_and_labels(path):
    inner = path.relative_to(PACKAGE).as_posix()
    if inner in DOOR or inner in AT_THE_DOOR:
        return
    assert not {name for name in imports_of(path) if name.startswith("sklearn.") and name.split(".")[-1] in CHECKERS}


@of_every(SOURCES)
def test_fronts_use_no_private_names(path):
    """Fronts may look inside the package: a name is public for users, not for them."""
    me = name_of(path)
    if me in FRONTS:
        assert not [p for p in lacunar_imports(path) if p[0] not in {me, *MACHINE} and private(p)]


def test_bench_uses_public_names():
    bad = {
        label(path)
        for path in (ROOT / "bench").rglob("*.py")
        if any(private(parts) or inside(parts) for parts in lacunar_imports(path))
    }
    assert not bad


@of_every(SOURCES)
def test_one_module_for_randomness_and_one_for_the_machine(path):
    tree = tree_of(path)
    dotted = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} | imports_of(path)
    if path.name != "_random.py":
        # The type of a generator may be named; drawing and seeding may not.
        drawing = {d for d in dotted if re.match(r"(np|numpy)\.random\.(?!Generator$|RandomState$)\w+$", d)}
        assert not drawing, "numpy.random belongs to _random.py"
        assert not {d for d in dotted if d == "random" or d.startswith("random.")}
    if path.name != "_threads.py":
        assert not {d for d in dotted if re.match(r"(os|multiprocessing|joblib)\.\w*(cpu_count|sched_getaffinity)", d)}


@of_every(SOURCES)
def test_heavy_packages_are_imported_where_used(path):
    tree = tree_of(path)
    roots = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.split(".")[0])
    assert not roots & {"matplotlib", "pandas", "polars", "pyarrow", "rich", "pickle", "dask"}


def unpickles(tree: ast.AST) -> list[str]:
    """What could run code out of a file: modules of pickles, names that lead to them, and pickles allowed in .npy files."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = [] if isinstance(node, ast.Import) else [node.module or ""]
            named = [alias.name for alias in node.names]
            found += [n for n in [*module, *named] if n.split(".")[0] in PICKLES]
            found += [f"{m}.{n}" for m in module for n in named if m.split(".")[0] == "joblib" and n in LOADERS]
        elif isinstance(node, ast.Attribute | ast.Name):
            dotted = ast.unparse(node).split(".")
            found += [".".join(dotted)] if dotted[0] in PICKLES or dotted[-1] in {"read_pickle", "find_class"} else []
            found += ["joblib.load"] if dotted[0] == "joblib" and dotted[-1] in LOADERS else []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            options = {k.arg: k.value for k in node.keywords}
            refused = isinstance(options.get("allow_pickle"), ast.Constant) and options["allow_pickle"].value is False
            if called in {"eval", "exec", "compile", "__import__"}:
                found.append(called)
            if "allow_pickle" in options and not refused:
                found.append(f"{called}(allow_pickle={ast.unparse(options['allow_pickle'])})")
            if re.fullmatch(r"(np|numpy)(\.lib\.format)?\.(load|read_array|open_memmap)", called) and not refused:
                found.append(f"{called} without allow_pickle=False")
            if None in options and called.endswith(".load"):
                found.append(f"{called}(**options)")
    return found


PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle", "pickletools"}
LOADERS = {"load", "numpy_pickle"}


@of_every(SOURCES)
def test_nothing_is_unpickled(path):
    assert not unpickles(tree_of(path))


@pytest.mark.parametrize(
    "line",
    [
        "import pickle as p", "from pickle import loads", "def f():\n    import dill.source", "from joblib import load as read",
        "import joblib\njoblib.load('m')", "import numpy as np\nnp.load('a')", "np.load('a', allow_pickle=True)", "eval('1')",
        "np.load('a', allow_pickle=flag)", "np.lib.format.read_array(f)", "np.load('a', **options)", "pd.read_pickle('a')",
        "__import__('marshal')", "from shelve import open", "np.lib.format.read_array(f, allow_pickle=1)", "import _pickle",
    ],
)  # fmt: skip
def test_every_way_to_a_pickle_is_seen(line):
    assert unpickles(ast.parse(line))
