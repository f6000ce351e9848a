"""`pip install .` installs the package `core`, whole and typed, and nothing else of the project."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SETUPTOOLS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]


def is_installed(package: str) -> bool:
    return any(fnmatch(package, pattern) for pattern in SETUPTOOLS["packages"]["find"]["include"])


def test_every_folder_of_core_is_a_package_that_is_installed() -> None:
    folders = {module.parent for module in (PROJECT / "core").rglob("*.py")}
    for folder in folders:
        assert (folder / "__init__.py").exists(), f"{folder} has modules and is no package"
        assert is_installed(".".join(folder.relative_to(PROJECT).parts))


def test_no_other_folder_of_the_project_is_installed() -> None:
    assert not [name for name in ("functions", "infra", "tests", "corelike") if is_installed(name)]


def test_the_package_says_that_it_is_typed() -> None:
    assert (PROJECT / "core" / "py.typed").exists()
    assert "py.typed" in SETUPTOOLS["package-data"]["core"]
