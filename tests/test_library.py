"""The library in one process: the README's example works as it is printed, and its folder keeps what it holds."""

import ast
import re
import subprocess
import sys
from importlib import import_module
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


def test_every_public_name_is_the_one_that_type_checkers_see() -> None:
    imports = [
        node for node in ast.walk(ast.parse(Path(core.__file__).read_text())) if isinstance(node, ast.ImportFrom)
    ]
    seen = {
        alias.name: node.module for node in imports for alias in node.names if (node.module or "").startswith("core.")
    }
    assert sorted(seen) == core.__all__
    for name, module in seen.items():
        assert getattr(core, name) is getattr(import_module(module or ""), name)


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        vars(core)["__getattr__"]("nothing_of_this_name")


def test_a_model_is_imported_without_the_engine() -> None:
    script = "import sys, core.model.tenant; sys.exit('core.engine' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=PROJECT, check=False).returncode == 0
