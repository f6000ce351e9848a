"""Test collections: documents, questions, and which documents answer a question."""

import csv
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
VARIABLE = "TEST_COLLECTIONS"
"""Names another folder of public collections. Not ``WEFT_``: the engine refuses what begins so and is no setting."""
PUBLIC = ("scifact_mini", "scifact", "xquad_en", "xquad_es", "xquad_zh")
"""The public collections that are known here, by their folders' names."""


@dataclass(frozen=True)
class Corpus:
    """A test collection.

    Attributes:
        name: of lower-case letters, digits and underscores.
        documents: texts by ID.
        questions: texts by ID; each has a judgment.
        judgments: by question, the grades of documents, above 0. What is not there is no answer.
    """

    name: str
    documents: Mapping[str, str]
    questions: Mapping[str, str]
    judgments: Mapping[str, Mapping[str, int]]

    @property
    def language(self) -> str:
        """``es`` or ``zh`` where the name ends so; else ``en``."""
        ending = self.name.rpartition("_")[2]
        return ending if ending in {"es", "zh"} else "en"

    def asking(self, count: int, seed: int = 0) -> "Corpus":
        """The same documents with so many of the questions, drawn; fewer are always among more."""
        drawn = sorted(self.questions)
        Random(seed).shuffle(drawn)
        return replace(self, questions={one: self.questions[one] for one in drawn[:count]})

    def of(self, count: int, seed: int = 0) -> "Corpus":
        """So many of the documents, drawn, with the questions that they answer wholly."""
        drawn = set(Random(seed).sample(sorted(self.documents), min(count, len(self.documents))))
        documents = {one: text for one, text in self.documents.items() if one in drawn}
        questions = {one: text for one, text in self.questions.items() if self.judgments[one].keys() <= drawn}
        return replace(self, documents=documents, questions=questions)


def folder() -> Path:
    """Where public collections are looked for: in the folder that the environment names, else beside the project."""
    return Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")


def found(where: Path) -> list[str]:
    """The public collections that are there."""
    return [name for name in PUBLIC if (where / name / "docs.jsonl").is_file()]


def read(where: Path) -> Corpus:
    """The collection of a folder: ``docs.jsonl`` (id, title, text), ``queries.jsonl`` (id, text) and ``qrels.tsv``
    (question, document, grade). A document is its title, a line's end and its text.

    Raises:
        OSError, KeyError, ValueError: the folder is not one of a collection.
    """
    judgments: dict[str, dict[str, int]] = {}
    with (where / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
        for question, document, grade in csv.reader(lines, delimiter="\t"):
            if int(grade) > 0:
                judgments.setdefault(question, {})[document] = int(grade)
    return Corpus(
        name=where.name,
        documents={
            line["id"]: "\n".join(part for part in (line["title"], line["text"]) if part)
            for line in _lines(where / "docs.jsonl")
        },
        questions={line["id"]: line["text"] for line in _lines(where / "queries.jsonl") if line["id"] in judgments},
        judgments=judgments,
    )


def _lines(path: Path) -> Iterator[dict[str, str]]:
    # Not splitlines: a text may hold other characters that end lines.
    with path.open(encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)
