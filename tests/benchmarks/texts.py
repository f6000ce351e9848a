"""Real text that nobody here wrote: README texts of installed distributions, then the descriptions of AWS's calls."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions

from botocore.loaders import Loader

WORDS = 2400
"""A document of descriptions has at least so many words, which make about forty chunks."""

SERVICES = ("dynamodb", "s3", "sqs", "lambda", "iam", "rds", "glue", "sagemaker", "ec2")


@dataclass(frozen=True)
class Text:
    """A document to ingest."""

    key: str
    content: str
    media_type: str


def texts() -> Iterator[Text]:
    """The README texts by name, and then the descriptions: about 500,000 words, no text twice."""
    return itertools.chain(readmes(), descriptions())


def readmes() -> Iterator[Text]:
    """The README texts of the installed distributions."""
    found = {one.name: one for one in distributions()}
    for name in sorted(found):
        content = str(found[name].metadata.get_all("Description", [""])[0])
        if content.strip():
            yield Text(f"readmes/{name}.md", content, "text/markdown")


def descriptions() -> Iterator[Text]:
    """What botocore says of the operations of a few services and of their parameters: HTML."""
    loader = Loader()
    for service in SERVICES:
        model = loader.load_service_model(service, "service-2")
        parts: list[str] = []
        for name, operation in model["operations"].items():
            parts.append(_describe(name, operation, model["shapes"]))
            if sum(len(part.split()) for part in parts) >= WORDS:
                yield Text(f"descriptions/{service}/{name}.html", "\n".join(parts), "text/html")
                parts = []


def _describe(
    name: str, operation: dict[str, dict[str, str]], shapes: dict[str, dict[str, dict[str, dict[str, str]]]]
) -> str:
    members = shapes.get(operation.get("input", {}).get("shape", ""), {}).get("members", {})
    parts = [f"<h2>{name}</h2>", str(operation.get("documentation", ""))]
    parts += [f"<h3>{member}</h3>{of['documentation']}" for member, of in members.items() if "documentation" in of]
    return "".join(parts)
