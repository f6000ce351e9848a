"""Decides what an ingest or a removal of a source means, from the source's row alone. Nothing is read or written here.

A caller may send a ``source_version`` with a content. Versions are compared only within one sequence (a bucket, for
uploads). `core/protocol/README.md` says where a decision stands in the order of an ingest.
"""

from dataclasses import dataclass

from core.metadata.rows import CurrentVersion, SeenVersion, Source, VersionInProgress
from core.model.document import normalize_source_version
from core.model.errors import VersionConflict


@dataclass(frozen=True)
class CallerVersion:
    """The ``source_version`` of a caller.

    Attributes:
        number: 64 hexadecimal digits, which sort as the versions do.
        sequence: the name of the sequence that the version belongs to.
    """

    number: str
    sequence: str

    @classmethod
    def of(cls, source_version: str | None, sequence: str) -> "CallerVersion | None":
        """Returns None when the caller sends no ``source_version``."""
        if source_version is None:
            return None
        return cls(normalize_source_version(source_version), sequence)

    def is_seen(self, seen: SeenVersion | None) -> bool:
        """Tells whether a source has seen this version, or a higher one, of the same sequence."""
        return seen is not None and seen.sequence == self.sequence and self.number <= seen.version

    def seen(self, number: int, content_hash: str | None) -> SeenVersion:
        """Returns what the source remembers of this version.

        Args:
            number: the version number that the content or the removal took.
            content_hash: None for a removal.
        """
        return SeenVersion(version=self.number, sequence=self.sequence, number=number, content_hash=content_hash)


@dataclass(frozen=True)
class Late:
    """A newer version, or a removal, of the source exists already. Nothing is begun."""


@dataclass(frozen=True)
class Unchanged:
    """The source serves this content already.

    Attributes:
        renumber: the content came under a higher version than the source has seen, so its document takes a new number.
    """

    current: CurrentVersion
    renumber: bool


@dataclass(frozen=True)
class Join:
    """A version with this content is in progress.

    Attributes:
        renumber: as in `Unchanged`.
    """

    version: VersionInProgress
    renumber: bool


@dataclass(frozen=True)
class Begin:
    """The content is a new version of the source."""


Decision = Late | Unchanged | Join | Begin


def decide(source: Source, fingerprint: str, content_hash: str, version: CallerVersion | None) -> Decision:
    """Decides what to do with a content that came for a source.

    Raises:
        VersionConflict: the version came with another content before. Send a higher version.
    """
    higher = version is not None
    seen = source.seen if version and source.seen and source.seen.sequence == version.sequence else None
    if version and seen:
        if version.number < seen.version:
            return Late()
        higher = version.number > seen.version
        if not higher:
            if seen.content_hash != content_hash:
                raise VersionConflict("This source_version came with another content before; send a higher one")
            if seen.number < source.current_number or (seen.number == source.current_number and source.current is None):
                return Late()
    if source.current and source.current.fingerprint == fingerprint:
        return Unchanged(source.current, renumber=higher)
    in_progress = source.in_progress.get(fingerprint)
    if in_progress and in_progress.number > source.current_number:
        return Join(in_progress, renumber=higher)
    return Begin()


def removal_number(source: Source, version: CallerVersion | None) -> int | None:
    """Decides which version number a removal takes.

    Returns:
        A new number, or the number that the same removal took before; None when a newer version exists, so that the
        removal comes too late.

    Raises:
        VersionConflict: the version came with a content before. Send a higher version.
    """
    seen = source.seen
    if version is None or seen is None or seen.sequence != version.sequence or version.number > seen.version:
        return source.next_number
    if version.number < seen.version:
        return None
    if seen.content_hash is not None:
        raise VersionConflict("This source_version came with a content before; send a higher one")
    return seen.number
