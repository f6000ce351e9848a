"""The index in tests/README.md is true: the files that it names exist, and it names every proof."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
LINKS = re.findall(r"\]\(([^)]+)\)", (TESTS / "README.md").read_text())


def test_every_file_that_the_index_of_the_tests_names_exists() -> None:
    missing = [link for link in LINKS if not (TESTS / link).exists()]
    assert not missing, f"tests/README.md names files that do not exist: {missing}"


def test_the_index_of_the_tests_names_every_proof() -> None:
    proofs = {path.name for path in (TESTS / "proofs").glob("*.py") if "\n    main(" in path.read_text()}
    named = {Path(link).name for link in LINKS if link.startswith("proofs/")}
    assert proofs - named <= {"mutants.py"}, "the mutants try the proofs and are no proof of a promise"
