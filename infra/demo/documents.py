"""What the demo ingests: the README texts of the project's own dependencies, or files of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import metadata
from pathlib import Path

DISTRIBUTIONS = (
    "fastapi",
    "boto3",
    "requests",
    "rich",
    "httpx",
    "uvicorn",
    "moto",
    "mangum",
    "pydantic",
    "starlette",
    "attrs",
    "urllib3",
    "aws-lambda-powertools",
    "numpy",
    "tokenizers",
    "markdown-it-py",
    "semantic-text-splitter",
    "beautifulsoup4",
    "responses",
    "h11",
    "idna",
    "click",
    "flask",
    "werkzeug",
)
"""Installed with the project, and each with a text of some length."""

QUESTIONS = (
    "How do I run an ASGI application on AWS Lambda?",
    "How can tests use AWS services without an account?",
    "How do I print a table with colours in the terminal?",
    "Which library validates data using type hints?",
)

LONGEST = 16_000
"""Characters. Some texts hold the change log of years, which would be most of the demo; their start is enough."""

MEDIA_TYPES = {".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html", ".htm": "text/html"}


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document to ingest. ``key`` names its source for good."""

    key: str
    title: str
    content: bytes
    media_type: str


def own_dependencies() -> list[SourceText]:
    """The README texts that the installed packages carry."""
    texts = []
    for name in DISTRIBUTIONS:
        described = metadata(name)
        [declared] = described.get_all("Description-Content-Type", [""])
        markdown = declared.startswith("text/markdown")
        texts.append(
            SourceText(
                key=f"readmes/{name}.{'md' if markdown else 'txt'}",
                title=f"{described['Name']} {described['Version']}",
                content=described["Description"][:LONGEST].encode(),
                media_type="text/markdown" if markdown else "text/plain",
            )
        )
    return texts


def from_files(paths: Sequence[Path]) -> list[SourceText]:
    """Files of one's own; the media type follows from the name.

    Raises:
        OSError: a file cannot be read.
    """
    return [
        SourceText(
            key=path.as_posix().lstrip("./"),
            title=path.name,
            content=path.read_bytes(),
            media_type=MEDIA_TYPES.get(path.suffix.lower(), "text/plain"),
        )
        for path in paths
    ]
