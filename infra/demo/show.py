"""How the demo shows what it gets: tables on a terminal and in a file alike."""

import unicodedata
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

Json = dict[str, Any]

WIDTH = 110


def plain(text: str, longest: int | None = None) -> Text:
    """A document's text, made harmless to a terminal and, with a limit, one line of at most so many characters."""
    kept = "".join(character if _printable(character) else " " for character in text)
    if longest is not None:
        kept = " ".join(kept.split())
        kept = kept if len(kept) <= longest else f"{kept[: longest - 1]}…"
    return Text(kept)


def _printable(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character)[0] != "C"


def place(chunk: Json) -> str:
    """``chunk 3 of 12``."""
    lineage = chunk["lineage"]
    return f"chunk {lineage['chunk_index'] + 1} of {lineage['total_chunks']}"


def source(hit: Json) -> str:
    """What a hit calls its document."""
    document = hit["document"] or {}
    return str(document.get("title") or document.get("source") or "orphaned")


def hits_table(hits: Iterable[Json]) -> Table:
    """Hits with score, source, place, offsets, heading and the beginning of the text."""
    table = _table("#", "score", "source", "place", "characters", "heading", "text")
    for hit in hits:
        chunk = hit["chunk"]
        table.add_row(
            str(hit["rank"]),
            f"{hit['score']:.3f}",
            plain(source(hit), 28),
            place(chunk),
            f"{chunk['start_index']}–{chunk['end_index']}",
            plain(chunk["context"] or "", 40),
            plain(chunk["text"], 60),
        )
    return table


def comparison_table(comparison: Json) -> Table:
    """Every hit, and what was left out, with its place in both rankings and why it is there."""
    table = _table("rank", "vector rank", "source", "place", "why")
    for hit in [*comparison["hits"], *comparison["left_out"]]:
        move = hit["move"]
        table.add_row(
            _rank(hit),
            str(hit["vector_rank"] or f"beyond {comparison['window']}"),
            plain(source(hit), 24),
            place(hit["chunk"]),
            Text.assemble((move["code"].replace("_", " "), "bold"), ". ", plain(move["detail"])),
            style="" if hit["rank"] else "dim",
        )
    return table


def _rank(hit: Json) -> Text:
    """Green where it rose, yellow where it fell."""
    if not hit["rank"]:
        return Text("left out")
    risen = {"moved_up": "green", "from_beyond_window": "green", "moved_down": "yellow"}
    return Text(str(hit["rank"]), style=risen.get(hit["move"]["code"], ""))


def comparison_summary(comparison: Json) -> str:
    """The figures of a comparison in one line."""
    return (
        f"{comparison['score']} score, window {comparison['window']}, {comparison['vector_matches']} vector matches, "
        f"left out {len(comparison['left_out'])}, reordered: {_yes(comparison['reordered'])}, "
        f"{comparison['retriever_ms']:.0f} ms, of which {comparison['vector_ms']:.0f} the search by vectors"
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def context_panel(context: Json) -> Panel:
    """The context as a model would be given it."""
    return Panel(
        plain(context["context"]),
        title=f"{context['total_tokens']} of at most {context['max_tokens']} tokens ({context['token_counter']})",
        title_align="left",
    )


def citations_table(context: Json) -> Table:
    """What each marker stands for."""
    table = _table("marker", "source", "heading", "characters", "chunk")
    for citation in context["citations"]:
        table.add_row(
            Text(f"[{citation['marker']}]"),
            plain(citation["title"] or citation["source"], 40),
            plain(citation["context"] or "", 40),
            f"{citation['start_index']}–{citation['end_index']}",
            citation["chunk_id"],
        )
    return table


def ingest_table(rows: Iterable[tuple[str, Json, float]]) -> Table:
    """What became of sources that were sent again: name, answer, seconds."""
    table = _table("source", "state", "chunks", "what happened", "seconds")
    for key, result, seconds in rows:
        table.add_row(plain(key), result["state"], str(result["chunk_count"]), outcome(result), f"{seconds:.2f}")
    return table


def outcome(result: Json) -> str:
    """An ingest's answer in words."""
    if result["unchanged"]:
        return "unchanged: nothing was embedded"
    if result["replaced"]:
        return f"replaced {', '.join(result['replaced'])}"
    return "new"


def new_console(*, quiet: bool) -> Console:
    """A console with colours on a terminal alone, and with room for the tables elsewhere."""
    console = Console(quiet=quiet, highlight=False)
    return console if console.is_terminal else Console(quiet=quiet, highlight=False, width=WIDTH)


def _table(*columns: str) -> Table:
    table = Table(show_lines=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in {"#", "rank", "score", "place", "marker"})
    return table
