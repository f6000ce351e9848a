"""``python -m infra.demo [FILES…] [--ask QUESTION] [--json]``: everything once, over HTTP, on a stack of its own."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from infra.demo import show
from infra.demo.client import DemoError, Json, local_stack
from infra.demo.documents import QUESTIONS, SourceText, from_files, own_dependencies
from infra.demo.story import Story

TENANT = "demo"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo. The answer is the process's exit code."""
    options = _parser().parse_args(arguments)
    console = show.new_console(quiet=options.json)
    try:
        texts = from_files(options.files) if options.files else own_dependencies()
        questions = options.ask or (["What is this about?"] if options.files else list(QUESTIONS))
        report = _run(console, texts, questions, options.vectors)
    except (DemoError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(report))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.demo", description="Weft at work, in a minute.")
    parser.add_argument("files", nargs="*", type=Path, help="files to ingest instead of the dependencies' READMEs")
    parser.add_argument("--ask", action="append", metavar="QUESTION", help="may be given more than once")
    parser.add_argument("--vectors", choices=["embedded", "opensearch"], default="embedded", help="the vector store")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _run(console: Console, texts: list[SourceText], questions: Sequence[str], vectors: str) -> Json:
    began = time.monotonic()
    console.print("Starting the local stack …")
    with local_stack(TENANT, vectors) as client:
        console.print(f"It answers after {time.monotonic() - began:.1f} s.")
        report = Story(console, client).tell(texts, questions)
    seconds = round(time.monotonic() - began, 1)
    console.print(f"\nDone in {seconds:.0f} s.")
    return report | {"seconds": seconds}


if __name__ == "__main__":
    sys.exit(main())
