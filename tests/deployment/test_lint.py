"""Both forms of the template are clean: each shows faults that the other hides."""

import subprocess
import sys
from pathlib import Path

from infra.template import PATH


def problems(path: Path) -> str:
    command = [sys.executable, "-m", "cfnlint", "--regions", "us-east-1", "--template", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_the_template_has_no_lint() -> None:
    assert problems(PATH) == ""


def test_what_sam_makes_of_the_template_has_no_lint(transformed_file: Path) -> None:
    assert problems(transformed_file) == ""
