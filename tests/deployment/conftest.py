"""The template, read once."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.template import PATH, Template, load

SAM_PYTHON = PATH.parent / ".venv-sam" / "bin" / "python"


@pytest.fixture(scope="session")
def template() -> Template:
    return load()


@pytest.fixture(scope="session")
def resources(template: Template) -> dict[str, dict[str, Any]]:
    answer: dict[str, dict[str, Any]] = template["Resources"]
    return answer


@pytest.fixture(scope="session")
def transformed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What SAM makes of the template."""
    assert SAM_PYTHON.exists(), f"{SAM_PYTHON} is missing: run `make setup`"
    run = subprocess.run(
        [SAM_PYTHON, "-m", "infra.transform"], cwd=PATH.parent, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    path = tmp_path_factory.mktemp("template") / "transformed.json"
    path.write_text(run.stdout, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def transformed(transformed_file: Path) -> dict[str, dict[str, Any]]:
    """The resources that SAM makes."""
    answer: dict[str, dict[str, Any]] = json.loads(transformed_file.read_text(encoding="utf-8"))["Resources"]
    return answer
