"""Each function's artifact is built from locked wheels, the same versions that the suite runs with."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from infra.template import PATH, Function, functions, load

ROOT = PATH.parent
FOLDERS = ("catalog", "ingest", "retrieve", "compare", "recovery")
Resources = dict[str, dict[str, Any]]

START = """
import importlib, importlib.metadata, re, sys

handler, *locked = sys.argv[1:]
foreign = {
    module
    for module, distributions in importlib.metadata.packages_distributions().items()
    if not {re.sub("[-_.]+", "-", name).lower() for name in distributions} & set(locked)
}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in foreign:
            raise ModuleNotFoundError(f"{name} is not among the function's wheels", name=name)

sys.meta_path.insert(0, Refuse())
importlib.import_module(handler)
importlib.import_module("core.wiring").engine_from_environment()
"""


def locked(path: Path) -> set[str]:
    """The pins of a lock file: ``name==version``."""
    return set(re.findall(r"^([a-z0-9-]+==[^\s;]+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def recipe(name: str) -> str:
    """What make would do for a function."""
    command = ["make", "--dry-run", "--makefile", "infra/build/Makefile", f"build-{name}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_wheel_of_a_function_is_locked_by_its_hash(folder: str) -> None:
    text = (ROOT / "functions" / folder / "requirements.txt").read_text(encoding="utf-8")
    requirements = re.split(r"\n(?=\S)", text.strip())

    assert [each for each in requirements if "--hash=sha256:" not in each] == []
    assert "http" not in text.replace("httpcore", "")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_runs_with_the_versions_that_are_tested(folder: str) -> None:
    untested = locked(ROOT / "functions" / folder / "requirements.txt") - locked(ROOT / "requirements" / "dev.txt")

    assert untested == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_function_asks_for_nothing_that_the_project_does_not(folder: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = project["dependencies"] + project["optional-dependencies"]["opensearch"]
    asked = (ROOT / "functions" / folder / "requirements.in").read_text(encoding="utf-8").split()

    assert set(asked) <= {re.split(r"[>=\[]", each)[0] for each in known}


def test_every_function_is_built_from_its_own_folder_for_the_template_s_runtime(
    resources: Resources, template: dict[str, Any]
) -> None:
    version = template["Globals"]["Function"]["Runtime"].removeprefix("python")
    for name, resource in resources.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        commands = recipe(name)
        assert f"--requirement {resource['Properties']['CodeUri']}/requirements.txt" in commands, name
        assert f"--python-version {version}" in commands, name
        assert resource["Metadata"]["BuildMethod"] == "makefile", name


def test_bytecode_is_compiled_so_that_a_zip_keeps_it() -> None:
    assert "--invalidation-mode unchecked-hash" in recipe("CatalogFunction")


@pytest.mark.parametrize("function", list(functions(load()).values()), ids=lambda function: function.name)
def test_a_function_starts_with_its_own_wheels_alone(function: Function) -> None:
    folder = function.handler.split(".")[1]
    names = sorted(pin.partition("==")[0] for pin in locked(ROOT / "functions" / folder / "requirements.txt"))
    deployed = {
        "WEFT_TABLE": "weft",
        "WEFT_BUCKET": "weft-objects",
        # One that does not answer yet.
        "WEFT_VECTORS": "opensearch",
        "WEFT_OPENSEARCH_URL": "http://127.0.0.1:9",
        "WEFT_RERANKER": "bedrock",
        "AWS_DEFAULT_REGION": "us-east-1",
    }

    run = subprocess.run(
        [sys.executable, "-c", START, function.handler.rpartition(".")[0], *names],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]} | function.environment | deployed,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
