"""How long each function's handler takes to import in a clean process, and how many lines of code there are."""

import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from infra.template import functions, load
from tests.support.command import finish, parser, progress

ROOT = Path(__file__).parents[2]
TIMES = 5
FOLDERS = ("core", "functions", "infra", "tests")
_IMPORT = "import sys, time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def main() -> None:
    given = parser(__doc__, vectors=()).parse_args()
    modules = sorted({one.handler.rpartition(".")[0] for one in functions(load()).values()})
    answer = {
        "rows": [
            {"handler": module, "import_ms": import_ms(module, TIMES * given.rounds)}
            for module in progress(modules, "Importing")
        ],
        "lines": {folder: lines(ROOT / folder) for folder in FOLDERS},
    }
    finish(answer, held=True, quiet=given.json, show=partial(_show, answer))


def import_ms(module: str, times: int) -> float:
    """Median milliseconds that the import alone takes, in a new interpreter each time; bytecode is there."""
    command = [sys.executable, "-c", _IMPORT.format(module=module)]
    runs = [
        float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        for _ in range(times + 1)
    ]
    return round(statistics.median(runs[1:]) * 1000, 1)  # the first one may have had to compile


def lines(folder: Path) -> int:
    """Lines of Python that are neither blank nor a comment."""
    every = (line.strip() for path in folder.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in every if line and not line.startswith("#"))


def _show(answer: dict[str, Any]) -> None:
    for one in answer["rows"]:
        print(f"{one['import_ms']:8.1f} ms {one['handler']}")
    for folder, count in answer["lines"].items():
        print(f"{count:8} lines in {folder}/")


if __name__ == "__main__":
    main()
