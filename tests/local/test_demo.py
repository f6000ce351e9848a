"""The demo, whole, at a small size."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from core.reranking.models import PACKAGED
from infra.demo import show
from infra.demo.documents import LONGEST, own_dependencies
from tests.local.running import ROOT

LONGEST_S = 240


def demo(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "infra.demo", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    looms = tmp_path / "looms.md"
    looms.write_text("# Looms\n\n## Warp\n\nA loom holds the warp threads under tension.", encoding="utf-8")
    dyes = tmp_path / "dyes.txt"
    dyes.write_text("Madder dyes wool red. Woad dyes it blue.", encoding="utf-8")
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nThe weft is woven in with a shuttle.", encoding="utf-8")
    return [str(looms), str(dyes), str(notes)]


def test_it_ingests_one_s_own_files_asks_compares_cites_and_ingests_again(files: list[str]) -> None:
    ran = demo(*files, "--ask", "What holds the warp?", "--json")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["documents"] == 3
    [answer] = told["answers"]
    best = answer["hits"][0]
    assert best["document"]["title"] == "looms.md"
    assert best["chunk"]["context"] == "Looms"
    comparison = told["comparison"]
    assert comparison["strategy"] == ("rerank" if PACKAGED.is_installed() else "hybrid")
    assert comparison["hits"][0]["vector_rank"] == 1
    assert comparison["hits"][0]["move"]["code"] == "same_rank"
    assert "[1]" in told["context"]["context"]
    assert told["context"]["citations"][0]["chunk_id"] == best["chunk"]["id"]
    assert told["again"]["unchanged"]["unchanged"]
    assert len(told["again"]["changed"]["replaced"]) == 1


def test_without_a_terminal_its_tables_have_no_colours(files: list[str]) -> None:
    ran = demo(files[0], "--ask", "What holds the warp?")
    assert ran.returncode == 0, ran.stderr
    assert "\x1b" not in ran.stdout
    for said in (
        "chunk 1 of 1",
        "│ Looms ",
        "What holds the warp? By ",
        ", beside similarity",
        "vector rank",
        "same rank. Rank 1 in both; vector 1 (",
        "Relevant context:",
        "nothing was embedded",
        "replaced doc_",
    ):
        assert said in ran.stdout, f"{said} is missing in\n{ran.stdout}"


def test_a_file_that_is_not_there_is_one_clear_line() -> None:
    ran = demo("nowhere.md")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("demo: ")
    assert ran.stderr.count("\n") == 1
    assert "nowhere.md" in ran.stderr


def test_the_dependencies_texts_are_real_and_none_is_endless() -> None:
    texts = own_dependencies()
    assert len({text.key for text in texts}) == len(texts) > 20
    assert {text.media_type for text in texts} == {"text/markdown", "text/plain"}
    assert all(200 < len(text.content.decode()) <= LONGEST for text in texts)


def test_what_a_document_says_cannot_steer_the_terminal() -> None:
    assert show.plain("a\x1b[31mred\x07 [bold]b[/bold]").plain == "a [31mred  [bold]b[/bold]"
    assert show.plain("many   words\nhere", 9).plain == "many wor…"


def test_a_comparison_says_of_each_chunk_why_it_is_where_it_is() -> None:
    chunk = {"lineage": {"chunk_index": 0, "total_chunks": 2}}
    compared: dict[str, Any] = {"chunk": chunk, "document": {"title": "Looms"}, "vector_score": 0.5}
    moves = [
        {"rank": 1, "vector_rank": 0, "move": {"code": "from_beyond_window", "detail": "BM25 1 (3.2)"}},
        {"rank": 2, "vector_rank": 1, "move": {"code": "moved_down", "detail": "From 1 to 2"}},
        {"rank": 0, "vector_rank": 2, "move": {"code": "beyond_top_k", "detail": "It would be number 3"}},
    ]
    console = Console(width=show.WIDTH, record=True, quiet=False, file=io.StringIO())
    hits = [compared | move for move in moves]
    console.print(show.comparison_table({"hits": hits[:2], "left_out": hits[2:], "window": 50}))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines()]
    assert [row for row in rows if row and row[2] == "Looms"] == [
        ["1", "beyond 50", "Looms", "chunk 1 of 2", "from beyond window. BM25 1 (3.2)"],
        ["2", "1", "Looms", "chunk 1 of 2", "moved down. From 1 to 2"],
        ["left out", "2", "Looms", "chunk 1 of 2", "beyond top k. It would be number 3"],
    ]
