"""What every reranker asks of its query and how long it may take."""

from core.clock import Clock
from core.model.errors import InvalidArgument


def check_query(query: str) -> None:
    """
    Raises:
        InvalidArgument: the query is blank.
    """
    if not query.strip():
        raise InvalidArgument("The query is blank; nothing is relevant to it", field="query")


def end_of(clock: Clock, seconds: float, deadline: float | None) -> float:
    """The moment, in the clock's monotonic time, by which a call has to be done.

    Args:
        seconds: the reranker's own limit.
        deadline: the caller's.
    """
    own = clock.monotonic() + seconds
    return own if deadline is None else min(own, deadline)
