"""Ingests several documents of one request, several at once."""

import logging
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from operator import itemgetter

from core.ingest.fingerprint import content_hash
from core.model.errors import InternalError, WeftError
from core.model.ingest import BatchItem, IngestInput, IngestResult

logger = logging.getLogger(__name__)


def ingest_batch(
    ingest: Callable[[IngestInput], IngestResult], inputs: Sequence[IngestInput | WeftError], concurrency: int
) -> list[BatchItem]:
    """Ingests every input and returns one answer for each, in the order of the inputs.

    Inputs with the same source key, or with the same content and no source key, run in their order. An input that is
    already an error is answered with that error.

    Args:
        ingest: ingests one document.
        concurrency: how many documents are ingested at once.
    """
    keys = sorted((_source_of(document), position) for position, document in enumerate(inputs))
    runs = [[position for _, position in group] for _, group in groupby(keys, key=itemgetter(0))]
    answers: dict[int, BatchItem] = {}
    with ThreadPoolExecutor(concurrency, "ingest") as pool:
        for run in pool.map(partial(_run_in_order, ingest, inputs), runs):
            answers |= run
    return [answers[position] for position in range(len(inputs))]


def _source_of(document: IngestInput | WeftError) -> str:
    """Returns a text that is the same for inputs which must run in their order."""
    if isinstance(document, WeftError):
        return ""
    if document.source_key is not None:
        return f"{document.collection_id} key {document.source_key}"
    return f"{document.collection_id} content {content_hash(document.content)}"


def _run_in_order(
    ingest: Callable[[IngestInput], IngestResult],
    inputs: Sequence[IngestInput | WeftError],
    positions: Sequence[int],
) -> dict[int, BatchItem]:
    return {position: _answer(ingest, inputs[position]) for position in positions}


def _answer(ingest: Callable[[IngestInput], IngestResult], document: IngestInput | WeftError) -> BatchItem:
    if isinstance(document, WeftError):
        return document
    try:
        return ingest(document)
    except WeftError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a defect met by one document must not take the other answers away
        stack = "".join(traceback.format_tb(error.__traceback__))
        logger.error("Unexpected %s in a batch:\n%s", type(error).__name__, stack)  # noqa: TRY400 - the error's message may hold text of the document
        return InternalError("Something went wrong on our side; the log says what")
