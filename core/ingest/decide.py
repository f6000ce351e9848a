"""What one more ingest of a source means, decided from the source's row alone."""

from dataclasses import dataclass

from core.metadata.rows import Current, Seen, Source, Work
from core.model.document import normalize_source_version
from core.model.errors import VersionConflict


@dataclass(frozen=True)
class Version:
    """What a caller says of the order: a version, and the sequence it belongs to."""

    number: str
    sequence: str

    @classmethod
    def of(cls, source_version: str | None, sequence: str) -> "Version | None":
        """None without a ``source_version``; else the version as 64 hex digits."""
        if source_version is None:
            return None
        return cls(normalize_source_version(source_version), sequence)

    def is_seen(self, seen: Seen | None) -> bool:
        """Whether a source has seen this version, or a higher one, of the same sequence."""
        return seen is not None and seen.sequence == self.sequence and self.number <= seen.version

    def seen(self, number: int, content_hash: str | None) -> Seen:
        """What the source remembers of it."""
        return Seen(version=self.number, sequence=self.sequence, number=number, content_hash=content_hash)


@dataclass(frozen=True)
class Late:
    """A newer version, or a removal, is there already: nothing is begun."""


@dataclass(frozen=True)
class Unchanged:
    """The source serves just this. ``renumber``: under a higher version than it knew."""

    current: Current
    renumber: bool


@dataclass(frozen=True)
class Join:
    """A version with this content is in progress."""

    work: Work
    renumber: bool


@dataclass(frozen=True)
class Begin:
    """A new version."""


Decision = Late | Unchanged | Join | Begin


def decide(source: Source, fingerprint: str, content_hash: str, version: Version | None) -> Decision:
    """What to do with a content that came for a source.

    Raises:
        VersionConflict: the version is known with another content.
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
    work = source.work.get(fingerprint)
    if work and work.number > source.current_number:
        return Join(work, renumber=higher)
    return Begin()


def removal_number(source: Source, version: Version | None) -> int | None:
    """The number of a removal: a new one, the one it took before, or None when it comes too late.

    Raises:
        VersionConflict: the version is known as a content's.
    """
    seen = source.seen
    if version is None or seen is None or seen.sequence != version.sequence or version.number > seen.version:
        return source.next_number
    if version.number < seen.version:
        return None
    if seen.content_hash is not None:
        raise VersionConflict("This source_version came with a content before; send a higher one")
    return seen.number
