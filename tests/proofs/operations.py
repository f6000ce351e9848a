"""The operations that proofs cut and interleave: the scene that each of them finds, and what it does.

To add an operation, add a line to ``OPERATIONS``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.embedding.types import Embeddings
from core.model.collection import CollectionUpdate
from core.model.errors import Unavailable, UnsupportedMediaType
from core.model.ids import CollectionId, DocumentId
from core.model.ingest import IngestInput, IngestResult
from tests.proofs.calls import Call
from tests.proofs.cuts import Cut, Kind
from tests.proofs.harness import LIFE_S, STALLED_S, TENANT, Actor, World
from tests.support.contents import text

KEY = "folder/page.md"
LARGE = 30
"""More chunks than one batch of DynamoDB holds."""


@dataclass(frozen=True)
class Scene:
    """What an operation finds.

    Attributes:
        document: the document that the operation works on, if it works on one.
        known: documents whose presence and state belong to the outcome of the operation.
    """

    collection: CollectionId
    document: DocumentId | None = None
    known: tuple[DocumentId, ...] = ()

    @property
    def named(self) -> DocumentId:
        if self.document is None:
            raise ValueError("the scene names no document")
        return self.document


@dataclass(frozen=True)
class Operation:
    """One operation from its start to its end.

    Attributes:
        damaged: whether the stores disagree before the operation, so that no questions are asked until the interval of
            a reconcile has passed.
    """

    name: str
    prepare: Callable[[World], Scene]
    run: Callable[[Actor, Scene], Any]
    damaged: bool = False


# -- scenes ----------------------------------------------------------------------------------------


def empty(world: World) -> Scene:
    return Scene(world.collection().id)


def serving(chunks: int = 2, key: str | None = KEY, **fields: Any) -> Callable[[World], Scene]:
    """A scene with a served document."""

    def prepare(world: World) -> Scene:
        collection = world.collection().id
        document = world.plain.ingest(collection, text("old", chunks), source_key=key, **fields).document_id
        return Scene(collection, document)

    return prepare


def known(prepare: Callable[[World], Scene]) -> Callable[[World], Scene]:
    """The same scene, where the presence and state of the document's own row count too."""

    def prepare_known(world: World) -> Scene:
        scene = prepare(world)
        return Scene(scene.collection, scene.document, (scene.named,))

    return prepare_known


def failed(prepare: Callable[[World], Scene], key: str | None = KEY, tag: str = "bad") -> Callable[[World], Scene]:
    """The same scene with a failed document beside."""

    def prepare_failed(world: World) -> Scene:
        scene = prepare(world)
        outcome = world.run(lambda actor: ingest_badly(actor, scene, tag=tag, source_key=key))
        return Scene(scene.collection, getattr(outcome.failure, "document_id", None) or newest(world, scene))

    return prepare_failed


def stalled(
    prepare: Callable[[World], Scene],
    at: str,
    key: str | None = KEY,
    chunks: int = 2,
    tag: str = "new",
    seconds: float = STALLED_S + 60,
    **fields: Any,
) -> Callable[[World], Scene]:
    """The same scene with a document whose ingest died after its first write named ``at``; then time has passed."""

    def prepare_stalled(world: World) -> Scene:
        scene = prepare(world)
        die_after(world, at, lambda actor: actor.ingest(scene.collection, text(tag, chunks), source_key=key, **fields))
        document = newest(world, scene)
        world.clock.advance(seconds)
        return Scene(scene.collection, document)

    return prepare_stalled


def exhausted(world: World) -> Scene:
    """A stalled document at its last attempt."""
    scene = stalled(empty, VECTORS)(world)
    for _ in range(14):
        die_after(world, VECTORS, lambda actor: actor.ingest(scene.collection, text("new"), source_key=KEY))
        world.clock.advance(STALLED_S + 60)
    return scene


def superseded(world: World) -> Scene:
    """A superseded version. The ingest that replaced it died before the purge."""
    scene = serving(3)(world)
    die_before(world, "vectors.delete", lambda actor: actor.ingest(scene.collection, text("new"), source_key=KEY))
    return scene


def later(prepare: Callable[[World], Scene]) -> Callable[[World], Scene]:
    """The same scene after so much time that a sweep takes up what is in it."""

    def prepare_later(world: World) -> Scene:
        scene = prepare(world)
        world.clock.advance(STALLED_S + 60)
        return scene

    return prepare_later


def failed_and_due(world: World) -> Scene:
    """A failed document that is due for its last cleaning, with vectors that a late writer left."""
    return _with_late_vectors(world, lambda scene: world.engine.recovery.sweep(timedelta(0)))


def removed_and_due(world: World) -> Scene:
    """The late-writer mark of a removed document, with vectors that a late writer left."""
    return _with_late_vectors(world, lambda scene: world.engine.documents.delete(TENANT, scene.named))


def _with_late_vectors(world: World, take: Callable[[Scene], object]) -> Scene:
    """Takes a stalled document away, and writes its vectors again as its late writer would."""
    scene = stalled(serving(), VECTORS)(world)
    records = dict(world.mirror.records)
    take(scene)
    for (tenant, space, _), record in records.items():
        world.mirror.write(tenant, space, [record])
    world.clock.advance(LIFE_S + 1)
    return scene


def everything(world: World) -> Scene:
    """A collection with a document of every kind: ready with and without a key, failed, superseded, in progress."""
    scene = serving(LARGE)(world)
    actor = world.plain
    actor.ingest(scene.collection, text("loose"))
    world.run(lambda other: ingest_badly(other, scene, source_key="bad.md"))
    die_before(world, "vectors.delete", lambda other: other.ingest(scene.collection, text("new"), source_key=KEY))
    die_after(world, VECTORS, lambda other: other.ingest(scene.collection, text("half"), source_key="half.md"))
    die_after(world, VECTORS, lambda other: other.ingest(scene.collection, text("halfloose")))
    return scene


def half_deleted(at: str) -> Callable[[World], Scene]:
    """A collection whose delete died before its first write named ``at``."""

    def prepare(world: World) -> Scene:
        scene = everything(world)
        die_before(world, at, lambda actor: delete_collection(actor, scene))
        return scene

    return prepare


def emptied(world: World) -> Scene:
    """A collection whose row alone is left of it."""
    scene = everything(world)
    delete_collection(world.plain, scene)
    world.clock.advance(LIFE_S + 1)
    return scene


def damaged(world: World) -> Scene:
    """A collection where a vector is missing and other vectors belong to nothing."""
    scene = serving(3)(world)
    other = world.plain.ingest(scene.collection, text("loose")).document_id
    records = dict(world.mirror.records)
    place, _ = min(records.items(), key=lambda pair: pair[0][2])
    world.mirror.delete(*place[:2], [place[2]])
    if other is None:
        raise ValueError("the ingest began nothing")
    world.engine.documents.delete(TENANT, other)
    world.clock.advance(LIFE_S + 1)
    world.engine.recovery.sweep()
    for place, record in records.items():
        if place[2].document_id == other:
            world.mirror.write(*place[:2], [record])
    return scene


def die_after(world: World, call: str, step: Callable[[Actor], Any]) -> None:
    """Runs a process that dies after its first write of that name."""
    _die(world, call, step, Kind.DIES_AFTER)


def die_before(world: World, call: str, step: Callable[[Actor], Any]) -> None:
    """Runs a process that dies before its first write of that name."""
    _die(world, call, step, Kind.DIES_BEFORE)


def _die(world: World, name: str, step: Callable[[Actor], Any], kind: Kind) -> None:
    def plan(call: Call) -> Any:
        return Cut(call.number, kind)(call) if call.write and call.label == name else call.perform()

    outcome = world.run(step, plan)
    if not outcome.died:
        raise ValueError(f"the process did not come to {name}: {outcome.failure or outcome.answer}")


def newest(world: World, scene: Scene) -> DocumentId:
    """The document that was begun last."""
    return max(world.stores.documents.listed(TENANT, scene.collection))


# -- what the processes do -------------------------------------------------------------------------

VECTORS = "vectors.write"
CHUNKS = "dynamodb.batch_write_item"
BEGIN = "dynamodb.transact_write_items"


def ingest(tag: str = "new", chunks: int = 2, key: str | None = KEY, **fields: Any) -> Callable[[Actor, Scene], Any]:
    return lambda actor, scene: actor.ingest(scene.collection, text(tag, chunks), source_key=key, **fields)


def ingest_badly(actor: Actor, scene: Scene, tag: str = "bad", source_key: str | None = KEY) -> IngestResult:
    """An ingest whose embedder does not answer."""
    actor.embedder.failure = Unavailable("The embedder does not answer")
    return actor.ingest(scene.collection, text(tag), source_key=source_key)


def overtaken(actor: Actor, scene: Scene) -> IngestResult:
    """An ingest that is overtaken while it embeds: a later ingest makes its version ready first."""
    while_embedding(actor, lambda _: actor.world.plain.ingest(scene.collection, text("newer"), source_key=KEY))
    return actor.ingest(scene.collection, text("new"), source_key=KEY)


def while_embedding(actor: Actor, happens: Callable[[Sequence[str]], object]) -> None:
    """Lets something happen with the texts of every call of an actor's embedder, before the embedder answers."""
    embed = actor.embedder.embed

    def embed_late(texts: Sequence[str]) -> Embeddings:
        happens(texts)
        return embed(texts)

    actor.embedder.embed = embed_late  # type: ignore[method-assign]  # of this instance alone


def refuse(actor: Actor, scene: Scene) -> IngestResult:
    request = IngestInput(collection_id=scene.collection, content=b"%PDF", source_key=KEY, source_version="9")
    return actor.engine.ingest.refuse(TENANT, request, UnsupportedMediaType("no loader reads it"))


def delete_document(actor: Actor, scene: Scene) -> Any:
    return actor.engine.documents.delete(TENANT, scene.named)


def delete_source(version: str | None = None) -> Callable[[Actor, Scene], Any]:
    return lambda actor, scene: actor.engine.documents.delete_source(
        TENANT, scene.collection, KEY, actor.deadline(), source_version=version
    )


def delete_collection(actor: Actor, scene: Scene) -> Any:
    return actor.engine.collections.delete(TENANT, scene.collection, actor.deadline())


def sweep(actor: Actor, scene: Scene) -> Any:
    return actor.engine.recovery.sweep()


def update(**fields: Any) -> Callable[[Actor, Scene], Any]:
    return lambda actor, scene: actor.engine.collections.update(TENANT, scene.collection, CollectionUpdate(**fields))


def reindex(actor: Actor, scene: Scene) -> Any:
    return actor.engine.reindex.start(TENANT, scene.collection, actor.deadline())


def reconcile(actor: Actor, scene: Scene) -> Any:
    return actor.engine.reconcile.run(TENANT, scene.collection, actor.deadline())


def create(actor: Actor, scene: Scene) -> Any:
    return actor.collection("another")


OPERATIONS: tuple[Operation, ...] = (
    Operation("first ingest", empty, ingest()),
    Operation("first ingest of many chunks", empty, ingest(chunks=LARGE)),
    Operation("replace", serving(), ingest(chunks=3)),
    Operation("replace of many chunks", serving(27), ingest(chunks=LARGE)),
    Operation("replace with failed older versions", failed(failed(serving()), tag="worse"), ingest()),
    Operation("replace with a superseded version", superseded, ingest("newest")),
    Operation("replace by version", serving(source_version="a"), ingest(source_version="b")),
    Operation("replace out of order", serving(source_version="b"), ingest(source_version="a")),
    Operation("replace that is overtaken", serving(), overtaken),
    Operation("replace that fails", serving(), ingest_badly),
    Operation("first ingest that fails", empty, ingest_badly),
    Operation("ingest unchanged, described anew", serving(), ingest("old", title="A title")),
    Operation("ingest unchanged, by a higher version", serving(source_version="a"), ingest("old", source_version="b")),
    Operation("refusal", serving(), refuse),
    Operation("unkeyed ingest", empty, ingest(key=None)),
    Operation("unkeyed ingest of many chunks", empty, ingest(key=None, chunks=LARGE)),
    Operation("unkeyed ingest after a failed one", failed(empty, None, "new"), ingest(key=None)),
    Operation("claim", stalled(empty, VECTORS), ingest()),
    Operation("claim of a replace", stalled(serving(), CHUNKS), ingest()),
    Operation("claim of many chunks", stalled(serving(), VECTORS, chunks=LARGE), ingest(chunks=LARGE)),
    Operation("claim at once after begin", stalled(empty, BEGIN), ingest()),
    Operation("claim without a key", stalled(empty, VECTORS, None), ingest(key=None)),
    Operation(
        "claim by a higher version",
        stalled(serving(source_version="a"), VECTORS, source_version="b"),
        ingest(source_version="c"),
    ),
    Operation("claim beyond the last attempt", exhausted, ingest()),
    Operation("delete document", known(serving(3)), delete_document),
    Operation("delete document of many chunks", known(serving(LARGE)), delete_document),
    Operation("delete document without a key", known(serving(3, None)), delete_document),
    Operation("delete document that failed", known(failed(serving())), delete_document),
    Operation("delete document in progress", known(stalled(serving(), VECTORS, seconds=0)), delete_document),
    Operation(
        "delete document in progress without a key",
        known(stalled(empty, VECTORS, None, seconds=0)),
        delete_document,
    ),
    Operation("delete document that is superseded", superseded, delete_document),
    Operation("delete source", serving(LARGE), delete_source()),
    Operation(
        "delete source with versions of all kinds",
        stalled(failed(superseded), VECTORS, tag="newest", seconds=0),
        delete_source(),
    ),
    Operation("delete source by version", serving(source_version="a"), delete_source("b")),
    Operation("delete source that is not there", empty, delete_source("b")),
    Operation("delete collection", everything, delete_collection),
    Operation("sweep of a stalled document", stalled(serving(), VECTORS), sweep),
    Operation("sweep of a stalled document of many chunks", stalled(serving(), VECTORS, chunks=LARGE), sweep),
    Operation("sweep of a stalled document without a key", stalled(empty, VECTORS, None), sweep),
    Operation("sweep of a superseded document", later(superseded), sweep),
    Operation("sweep of a failed document", failed_and_due, sweep),
    Operation("sweep of a removed document", removed_and_due, sweep),
    Operation("sweep of a collection that is being deleted", later(half_deleted("vectors.delete")), sweep),
    Operation("sweep of a collection with open gates", later(half_deleted("dynamodb.update_item")), sweep),
    Operation("sweep of an emptied collection", emptied, sweep),
    Operation("create collection", empty, create),
    Operation("rename collection", serving(), update(name="renamed")),
    Operation("describe collection", serving(), update(description="what it is")),
    Operation("reindex", serving(LARGE), reindex),
    Operation("reconcile", damaged, reconcile, damaged=True),
)
