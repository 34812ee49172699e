"""Another release of the zone data, as an upgrade of the tzdata package would bring it.

The installed package, in which some zones have the rules of others: Algiers, which knows
no summer time, with those of Paris begins to have one. Processes use it when the folder comes first
on their path; a test uses it by `installed`.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from reminders.recurrence import zones


def release(folder: Path, version: str, like: Mapping[str, str] | None = None) -> Path:
    """A tzdata package `version` below `folder`, with each zone of `like` as the one it names."""
    package = folder / version / "tzdata"
    installed_now = Path(str(files("tzdata")))
    leave_out = shutil.ignore_patterns("__pycache__", "__init__.py")
    shutil.copytree(installed_now, package, ignore=leave_out, copy_function=os.symlink)
    for name, other in (like or {}).items():
        (package / "zoneinfo" / name).unlink()
        shutil.copyfile(installed_now / "zoneinfo" / other, package / "zoneinfo" / name)
    (package / "__init__.py").write_text(f'IANA_VERSION = "{version}"\n__version__ = "0"\n')
    return package.parent


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """This process computes with the release in `folder` for the length of the block."""
    before = sys.modules.get("tzdata")
    spec = importlib.util.spec_from_file_location(
        "tzdata",
        folder / "tzdata" / "__init__.py",
        submodule_search_locations=[str(folder / "tzdata")],
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["tzdata"] = module
    _forget()
    try:
        yield
    finally:
        if before is None:
            del sys.modules["tzdata"]
        else:
            sys.modules["tzdata"] = before
        _forget()


def _forget() -> None:
    zones._load.cache_clear()
    zones.zone_names.cache_clear()
