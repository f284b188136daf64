"""What the package makes public, found in it by itself, so that no list of a test forgets a class."""

import importlib
import inspect
import pkgutil

import lacunar

NAMES = [module.name for module in pkgutil.walk_packages(lacunar.__path__, "lacunar.")]
MODULES = [
    lacunar, *(importlib.import_module(n) for n in NAMES if not n.endswith(("__main__", "._core", "._linalg")))
]  # fmt: skip


def is_private(name):
    return any(part.startswith("_") for part in name.split("."))


def exported(most_dots=9, under="lacunar"):
    """(dotted name, object) of what public modules list in `__all__`: those whose names begin so, and have at most so many dots."""
    public = [m for m in MODULES if not is_private(m.__name__) and m.__name__.count(".") <= most_dots]
    public = [m for m in public if m.__name__.startswith(under)]
    return [(f"{m.__name__}.{name}", getattr(m, name)) for m in public for name in getattr(m, "__all__", ())]


def classes(*methods, **where):
    """Exported classes with these methods, by name; `where` as in `exported`."""
    items = {item for _, item in exported(**where) if inspect.isclass(item)}
    return sorted((c for c in items if all(hasattr(c, m) for m in methods)), key=lambda c: c.__name__)


def documented():
    """(dotted name, object, whether it is a member of a class) of what is exported, and of the public methods and properties of its classes that are written in this package."""
    for name, item in exported(under="lacunar."):
        yield name, item, False
        for key in dir(item) if inspect.isclass(item) else ():
            owner, value = next(c for c in (*item.__mro__, type) if key in vars(c)), inspect.getattr_static(item, key)
            written = callable(value) or isinstance(value, classmethod | staticmethod | property)
            if written and not key.startswith("_") and owner.__module__.startswith("lacunar"):
                yield f"{name}.{key}", value, True
