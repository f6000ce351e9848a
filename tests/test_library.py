"""The library in one process: the README's example works as it is printed, and its folder keeps what it holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import core
from core import IngestInput, NewCollection, RetrieveQuery, Tenant, open_engine
from core.model.errors import ConfigurationError

PROJECT = Path(__file__).parents[1]


def readme_example() -> str:
    [block] = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    return str(block)


def test_the_readme_ingests_and_retrieves_in_at_most_ten_lines() -> None:
    statements = [line for line in readme_example().splitlines() if line and not line.startswith(("from ", "import "))]
    assert len(statements) <= 10, statements


def test_the_readmes_example_prints_the_chunk_that_answers_its_question(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", readme_example()],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "A loom holds the warp threads under tension" in run.stdout


def test_what_a_folder_holds_is_there_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    acme = Tenant("acme")
    engine = open_engine(tmp_path)
    collection = engine.collections.create(acme, NewCollection(name="notes"))
    engine.ingest.ingest(acme, IngestInput(collection_id=collection.id, content=b"Warp and weft.", source_key="a"))
    engine.stop()
    reopened = open_engine(tmp_path)
    hits = reopened.retrieve(acme, RetrieveQuery(query="weft")).hits
    assert [hit.chunk.text for hit in hits] == ["Warp and weft."]
    reopened.stop()


def test_a_file_that_is_no_table_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "metadata.db").write_bytes(b"not a database, and long enough to be looked at" * 10)
    with pytest.raises(ConfigurationError, match=r"metadata\.db"):
        open_engine(tmp_path)


def test_the_public_names_of_the_package_are_those_that_it_lists() -> None:
    assert all(hasattr(core, name) for name in core.__all__)
    assert sorted(core.__all__, key=str.casefold) == sorted(set(core.__all__), key=str.casefold)
