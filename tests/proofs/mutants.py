"""Mutants: each protection is switched off in the engine's code, in this process alone, and must turn a proof red.

Where one protection stands behind another, both are switched off together, and the outer one alone where that shows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.proofs.command import ALL, Options, Report, main, spread
from tests.proofs.mutation import Mutant, switched_off
from tests.proofs.probes import (
    EVERYTHING,
    Probe,
    beside,
    cited,
    cut,
    explained,
    foreign,
    isolated,
    late,
    race,
    readied,
    reasoned,
    redelivered,
    repaired,
    script,
)

_TRANSITIONS = "core.metadata.transitions:Transitions."
_ATTEMPT = "core.ingest.attempt:Attempt."
_MARK = "core.ingest.attempt:mark_failed"
_INGEST = "core.ingest.ingest:IngestService."
_DELETE = "core.ingest.delete:"
_PURGE = "core.ingest.purge:"
_SEARCH = "core.retrieval.search:"
_SWEEP = "core.recovery.sweep:RecoveryService."
_COLLECTIONS = "core.metadata.collections:Collections."
_EVENTS = "functions.ingest.events:"
_RECONCILE = "core.recovery.reconcile:"
_TABLE = "core.metadata.table:"
_EMBEDDED = "core.vectors.embedded:"
_QUERIES = "core.vectors.opensearch.query:"
_OPENSEARCH = "core.vectors.opensearch.store:OpenSearchVectorStore."
_BLOCKS = "core.retrieval.blocks:"
_ASSEMBLE = "core.retrieval.assemble:"
_RANKER = "core.retrieval.ranking:_Ranker."
_REASONS = "core.retrieval.reasons:"
_LATE = late("", 0.3)
_ASTRAY = (_SEARCH + "Search._matches", "match.tenant != self._tenant", "False")

MUTANTS: tuple[Mutant, ...] = (
    # attempt: the fencing token
    Mutant(
        "attempt: in the swap",
        _TRANSITIONS + "swap",
        "{_MINE} AND",
        "{_IN_PROGRESS} AND",
        (script("an old attempt swaps"),),
    ),
    Mutant(
        "attempt: everywhere",
        _TRANSITIONS + "swap",
        "{_MINE} AND",
        "{_IN_PROGRESS} AND",
        (_LATE,),
        (
            (_TRANSITIONS + "heartbeat", "condition=_MINE", "condition=_IN_PROGRESS"),
            (_ATTEMPT + "_swap", "or head.attempt != self._head.attempt", ""),
        ),
    ),
    Mutant("attempt: read before the swap", _ATTEMPT + "_swap", "or head.attempt != self._head.attempt", "", (_LATE,)),
    Mutant(
        "attempt: in the failure",
        _TRANSITIONS + "fail",
        "condition = _MINE",
        "condition = _IN_PROGRESS",
        (script("an old attempt has read, and fails"),),
    ),
    Mutant(
        "attempt: read before the failure",
        _MARK,
        " or now.attempt != head.attempt",
        "",
        (script("an old attempt reads, and fails"),),
    ),
    Mutant(
        "attempt: raised by a claim",
        _TRANSITIONS + "claim",
        '"next": head.attempt + 1',
        '"next": head.attempt',
        (cut("claim"),),
    ),
    Mutant(
        "attempt: in what a source serves",
        "core.retrieval.visibility:is_current",
        "(current.document_id, current.attempt)",
        "(current.document_id, chunk_id.attempt)",
        (_LATE,),
    ),
    Mutant(
        "attempt: in what is ready",
        "core.retrieval.visibility:is_ready",
        " and head.attempt == chunk_id.attempt",
        "",
        (_LATE,),
    ),
    Mutant("attempts end", _INGEST + "_join", "head.attempt == MAX_ATTEMPT", "False", (cut("claim beyond"),)),
    # reserved: what may have been written
    Mutant(
        "reserved: recorded",
        _ATTEMPT + "_chunk",
        "self._heartbeat(reserve=len(chunks))",
        "self._heartbeat()",
        (cut("first ingest", 0.2),),
    ),
    Mutant(
        "reserved: in a removal",
        _TRANSITIONS + "remove",
        " AND reserved = :reserved",
        "",
        (script("records how much"),),
    ),
    # the sweep's guard
    Mutant("sweep_guard", _TRANSITIONS + "fail", "if cutoff is not None:", "if False:", (script("a sweep has read"),)),
    Mutant("claim's cutoff: read", _INGEST + "_join", "head.heartbeat > cutoff", "False", (race("served: ingest |"),)),
    Mutant(
        "claim's cutoff: written",
        _TRANSITIONS + "claim",
        " AND heartbeat <= :cutoff",
        "",
        (script("a claim has read"),),
    ),
    # revision: a source is written as it was read
    Mutant(
        "revision",
        _TRANSITIONS + "_put_source",
        'condition="revision = :revision" if read.revision else "attribute_not_exists(pk)"',
        "condition=None",
        (race("served: ingest"),),
    ),
    Mutant(
        "content holder",
        _TRANSITIONS + "begin_unkeyed",
        'condition="document_id = :holder" if holder else "attribute_not_exists(pk)"',
        "condition=None",
        (race("unkeyed"),),
    ),
    # number: a version never replaces a newer one
    Mutant(
        "number: at the swap",
        _ATTEMPT + "_swap",
        "source is not None and source.current_number > head.number",
        "False",
        (race("served: ingest | ingest of other content"), cut("overtaken")),
    ),
    Mutant(
        "number: of a removal",
        _DELETE + "_remove_current",
        '"current_number": number, ',
        "",
        (race("served: ingest | delete source"),),
    ),
    Mutant(
        "renumber: the row",
        _TRANSITIONS + "renumber",
        '"SET #number = :number"',
        '"SET updated_at = updated_at"',
        (race("versions"),),
    ),
    Mutant("renumber: the source", _INGEST + "_renumber", '"current_number": number, ', "", (race("versions"),)),
    Mutant(
        "version: lower ones come too late",
        "core.ingest.decide:decide",
        "version.number < seen.version",
        "False",
        (race("versions"),),
    ),
    Mutant(
        "version: a removal is seen",
        _DELETE + "_remove_current",
        "version.seen(number, None)",
        "read.seen",
        (race("versions"),),
    ),
    Mutant(
        "version: a late removal",
        "core.ingest.decide:removal_number",
        "version.number < seen.version",
        "False",
        (race("versions"),),
    ),
    # pinned: the current document is as it was read
    Mutant(
        "pinned: both",
        _TRANSITIONS + "_put_source",
        'condition="revision = :revision" if read.revision else "attribute_not_exists(pk)"',
        'condition="attribute_exists(pk)" if read.revision else None',
        (race("served: ingest"),),
    ),
    # own success
    Mutant("own_success: at the swap", _ATTEMPT + "_swap", "settled is None", "True", (cut("first ingest", 0.5),)),
    Mutant(
        "own_success: after a failure",
        _ATTEMPT + "_end_badly",
        "if head is not None and head.attempt == self._head.attempt else None",
        "if False else None",
        (cut("replace"),),
    ),
    Mutant("own begin", _INGEST + "_join", "head.writer == plan.writer", "False", (cut("first ingest", 0.5),)),
    Mutant(
        "unknown outcome",
        _ATTEMPT + "_end_badly",
        'logger.warning("Document %s is left to the sweep", self._head.document_id)',
        "self._discard()",
        (cut("first ingest"),),
    ),
    # live work
    Mutant(
        "live_work: dropped by a swap",
        _TRANSITIONS + "swap",
        "work = read.without_work_up_to(head.number)",
        "work = read.work",
        (cut("replace", 0.1),),
    ),
    Mutant(
        "live_work: dropped by a removal",
        _DELETE + "_remove_current",
        ', "work": {}',
        "",
        (script("overtaken by a removal"),),
    ),
    Mutant("release of work", _TRANSITIONS + "release", "work == source.work", "True", (cut("fails", 0.3),)),
    Mutant(
        "release of content",
        _TRANSITIONS + "release",
        "holder != head.document_id",
        "True",
        (cut("without a key", 0.3),),
    ),
    # cleaned twice
    Mutant(
        "clean_again: failed", _TRANSITIONS + "fail", "now + self._writer_life", "now", (cut("first ingest"), _LATE)
    ),
    Mutant(
        "clean_again: marks",
        _TRANSITIONS + "_put_gone",
        "self._clock.now() + self._writer_life",
        "self._clock.now()",
        (late("first ingest"),),
    ),
    Mutant(
        "clean_again: when listed too early",
        "core.metadata.candidates:Candidates.remove",
        "candidate.due > table.due_at(now)",
        "False",
        (script("a sweep cleans"),),
        (("core.metadata.candidates:Candidates._leave", 'condition="sweep_sk = :due"', "condition=None"),),
    ),
    Mutant("mark of an attempt", _TRANSITIONS + "claim", "self._put_gone(head, attempt=head.attempt),", "", (_LATE,)),
    Mutant("mark of a document", _TRANSITIONS + "remove", "self._put_gone(head, attempt=None),", "", (_LATE,)),
    Mutant(
        "mark: cleans",
        _SWEEP + "_mark",
        "remove_data(self._parts, tenant, gone.space, gone.chunk_ids())",
        "pass",
        (_LATE, cut("removed")),
    ),
    Mutant(
        "sweep: cleans what failed",
        _SWEEP + "_clean",
        "remove_data(self._parts, head.tenant, head.space, head.chunk_ids())",
        "pass",
        (cut("sweep of a failed"),),
    ),
    Mutant(
        "sweep: purges",
        _SWEEP + "_document",
        "mine, _ = purge(self._parts, head)",
        "mine = True",
        (cut("sweep of a superseded", 0.2),),
    ),
    # the writer's life
    Mutant("writer's life", _ATTEMPT + "_check_time", "self._life.is_over()", "False", (late("first ingest"),)),
    Mutant(
        "discard", _ATTEMPT + "_discard", "remove_data(self._parts, head.tenant, head.space, written)", "pass", (_LATE,)
    ),
    Mutant(
        "life of a reindex",
        "core.recovery.revector:write_again",
        "life.is_over()",
        "False",
        (script("a reindex wakes up"),),
    ),
    # visible
    Mutant(
        "visible_last: keyed",
        _SEARCH + "_State.hides",
        "return not is_current(self.sources.get((match.collection_id, match.source_id)), match.chunk_id)",
        "return False",
        (cut("replace", 0.1),),
    ),
    Mutant(
        "visible_last: unkeyed",
        _SEARCH + "_State.hides",
        "return not is_ready(head, match.chunk_id)",
        "return False",
        (cut("unkeyed", 0.2),),
    ),
    Mutant(
        "visible: removed",
        _SEARCH + "_State.hides",
        "return document_id in self.marked",
        "return False",
        (_LATE, race("unkeyed", 40)),
    ),
    Mutant("search_again", _SEARCH + "Search.run", "range(MAX_SEARCHES)", "range(1)", (race("retrieve 1"),)),
    Mutant(
        "search_again: when something was hidden",
        _SEARCH + "Search._incomplete",
        "one.hidden or ",
        "",
        (race("retrieve 1"),),
    ),
    Mutant(
        "refill without the hidden",
        _SEARCH + "Search._matches",
        "exclude_generations=sorted(self._hidden)",
        "exclude_generations=[]",
        (script("beneath"),),
    ),
    Mutant(
        "refill with what came to serve",
        _SEARCH + "Search._incomplete",
        " or self._hidden.keys() & one.serving",
        "",
        (race("retrieve 10", 200),),
    ),
    Mutant(
        "rows purged between two reads",
        _SEARCH + "Search._read_back",
        "self._tenant, missing)\n",
        "self._tenant, [])\n",
        (race("retrieve"),),
    ),
    Mutant(
        "orphans of a closed collection",
        _SEARCH + "Search._orphans",
        "match.collection_id in active",
        "True",
        (race("unkeyed, served: delete collection | retrieve 1", 1000),),
    ),
    Mutant("tenant of a match", *_ASTRAY, (foreign,)),
    # gates and counters
    Mutant(
        "gate: open",
        _TRANSITIONS + "_gate",
        'condition="opened = :true" if opened else "attribute_exists(pk)"',
        'condition="attribute_exists(pk)"',
        (race("delete collection"),),
    ),
    Mutant(
        "gate: closed",
        _DELETE + "delete_collection",
        "retry_on_conflict(parts.clock, partial(parts.collections.close_gates, tenant, collection_id))",
        "pass",
        (race("delete collection"),),
    ),
    Mutant(
        "counters: a swap",
        _TRANSITIONS + "swap",
        "counts = Counts(documents=1, chunks=chunk_count, working=-1)",
        "counts = Counts(documents=1, chunks=chunk_count)",
        (cut("first ingest", 0.02),),
    ),
    Mutant(
        "counters: a replaced version",
        _TRANSITIONS + "swap",
        "chunk_count - read.current.chunk_count",
        "chunk_count",
        (cut("replace", 0.02),),
    ),
    Mutant(
        "counters: a removal",
        _TRANSITIONS + "remove",
        "counts = Counts(rows=-1, working=-int(head.state.in_progress))",
        "counts = Counts(rows=-1)",
        (cut("delete document", 0.02),),
    ),
    Mutant(
        "counters: the listing is behind",
        _DELETE + "_empty",
        "if not found:",
        "if not found: return True\n        if not found:",
        (race("listing lags"),),
    ),
    Mutant(
        "last look at a collection",
        _DELETE + "_finish",
        "parts.clock.now() + parts.writer_life",
        "parts.clock.now()",
        (script("a removal is written"),),
    ),
    Mutant(
        "entries of a collection",
        _SWEEP + "_collection",
        "remove_entries(self._parts, row)",
        "pass",
        (script("a removal is written"),),
    ),
    # deletes
    Mutant(
        "delete document: that turns ready beside it",
        _DELETE + "_remove",
        "if settled.state == DocumentState.READY:",
        "if False:",
        (race("stalled: ingest | delete document"),),
    ),
    Mutant(
        "delete document: again when it has turned ready",
        _DELETE + "delete_document",
        "settled = now is None or _remove(parts, now, removed)",
        "settled = now is None or _remove(parts, now, removed) in (True, False)",
        (race("stalled: ingest | delete document"),),
    ),
    Mutant(
        "delete source: newer versions stay",
        _PURGE + "_take_rows",
        "now.number >= below",
        "False",
        (race("served: ingest | delete source", 300), race("empty: ingest | delete source", 300)),
        ((_DELETE + "delete_source", "head.number < number and", ""),),
    ),
    Mutant(
        "delete document: the source forgets",
        _DELETE + "_stop_serving",
        "released = parts.transitions.forget(now, source)",
        "released = []",
        (cut("delete document", 0.2),),
    ),
    Mutant(
        "delete: vectors",
        _PURGE + "remove_data",
        "vectors = parts.vector_store().delete(tenant, space, chunk_ids)",
        "vectors = 0",
        (cut("delete", 0.1),),
    ),
    Mutant(
        "delete: chunk rows",
        _PURGE + "remove_data",
        "parts.documents.delete_chunks(tenant, chunk_ids)",
        "pass",
        (cut("delete", 0.1),),
    ),
    # collections
    Mutant(
        "a collection's writes are told apart",
        "core.catalog.collections:CollectionService._update",
        "max(self._parts.clock.now(), row.updated_at + timedelta(milliseconds=1))",
        "self._parts.clock.now()",
        (race("rename | describe"),),
    ),
    Mutant(
        "a collection is written as it was read",
        _COLLECTIONS + "update",
        '"updated_at = :read AND #state = :active"',
        '"#state = :active"',
        (race("rename"),),
    ),
    Mutant(
        "a collection that is being deleted is not changed",
        _COLLECTIONS + "update",
        " AND #state = :active",
        "",
        (race("delete collection | rename"), race("delete collection | describe")),
    ),
    Mutant(
        "a name is freed",
        _COLLECTIONS + "start_deleting",
        "self._free_name(row),",
        "",
        (cut("delete collection", 0.05),),
    ),
    # reindex and reconcile
    Mutant(
        "reconcile: what is in progress stays",
        "core.recovery.reconcile:_is_in_progress",
        "head is not None and head.state.in_progress and head.attempt == chunk_id.attempt",
        "False",
        (race("reconcile"),),
    ),
    Mutant(
        "reconcile: no gate has moved",
        _COLLECTIONS + "correct",
        'condition=" AND ".join(held)',
        "condition=None",
        (script("corrects"),),
    ),
    Mutant(
        "jobs: one worker",
        "core.metadata.jobs:Jobs.put",
        'condition="revision = :read" if job.revision > 1 else "attribute_not_exists(pk)"',
        "condition=None",
        (race("reindex"),),
    ),
    Mutant(
        "reconcile: an index beyond the last",
        _RECONCILE + "_is_served",
        "and chunk_id.chunk_index < head.chunk_count",
        "",
        (repaired,),
    ),
    Mutant(
        "reconcile: another attempt",
        _RECONCILE + "_is_served",
        "and head.attempt == chunk_id.attempt",
        "",
        (repaired,),
    ),
    Mutant(
        "reconcile: a lost chunk's vector",
        _RECONCILE + "ReconcileService._rows",
        "removed=self._remove(job, [one for one in lost if one in there])",
        "removed=0",
        (repaired,),
    ),
    Mutant(
        "reconcile goes on inside a document",
        "core.recovery.pieces:next_pieces",
        "ids = ids[inside.chunk_index + 1 :]",
        "ids = []",
        (repaired,),
    ),
    # the bucket's events
    Mutant(
        "events: a document in progress acknowledges nothing",
        _EVENTS + "QueueMessages._ingest",
        'raise NotAcknowledgedError(f"Document {result.document_id} is still in progress")',
        "return",
        (redelivered,),
    ),
    Mutant(
        "events: sequencers of different lengths",
        _EVENTS + "_source_version",
        'sequencer and sequencer.ljust(SOURCE_VERSION_DIGITS, "0")',
        "sequencer",
        (redelivered,),
    ),
    Mutant(
        "events: a creation has its place",
        _EVENTS + "_input_without_content",
        "source_version=_source_version(record),",
        "source_version=None,",
        (redelivered,),
    ),
    Mutant(
        "events: a removal has its place",
        _EVENTS + "QueueMessages._remove",
        "source_version=_source_version(record),",
        "source_version=None,",
        (redelivered,),
    ),
    Mutant(
        "events: the version that is spoken of",
        _EVENTS + "QueueMessages._apply_change",
        "self._ingest(record, name, record.s3.get_object.version_id)",
        "self._ingest(record, name, None)",
        (redelivered,),
    ),
    Mutant(
        "events: a version that goes leaves the one before",
        _EVENTS + "QueueMessages._apply_change",
        "self._apply_current_version(record, name)",
        "self._remove(record, name)",
        (redelivered,),
    ),
    Mutant(
        "events: a refusal says why",
        _EVENTS + "QueueMessages._record_refusal",
        "self._engine.ingest.refuse(name.tenant, document, error)",
        "pass",
        (redelivered,),
    ),
    Mutant(
        "events: keys are decoded",
        _EVENTS + "QueueMessages._handle_change",
        "unquote_plus(record.s3.get_object.key)",
        "record.s3.get_object.key",
        (redelivered,),
    ),
    # tenants
    Mutant(
        "isolation: a page token is its tenant's",
        "core.metadata.paging:PageTokens._mac",
        "[tenant, query, payload",
        "[query, payload",
        (isolated,),
    ),
    Mutant(
        "isolation: the verified claim alone",
        "core.http.request:tenant_of",
        "value = authorizer",
        'value = request.headers.get("x-tenant") or authorizer',
        (isolated,),
    ),
    Mutant("isolation: collections", _TABLE + "collections", "T#{tenant}", "T#all", (isolated,)),
    Mutant("isolation: uploads", _TABLE + "upload", "T#{tenant}#U", "T#all#U", (isolated,)),
    Mutant(
        "isolation: documents and chunks",
        _TABLE + "head",
        "T#{tenant}#D",
        "T#all#D",
        (isolated,),
        (
            (_TABLE + "info", "T#{tenant}#D", "T#all#D"),
            (_TABLE + "chunk", "T#{tenant}#D", "T#all#D"),
            ("core.catalog.documents:DocumentService._rows", "collection is None or ", "collection is not None and "),
        ),
    ),
    Mutant(
        "isolation: rows of the embedded store",
        _EMBEDDED + "_key",
        "str(tenant)",
        '"all"',
        (isolated,),
        (_ASTRAY,),
        vectors="embedded",
    ),
    Mutant(
        "isolation: the tenant's term",
        _QUERIES + "_filter",
        "[_tenant_term(tenant), *clauses]",
        "[*clauses]",
        (isolated,),
        vectors="opensearch",
    ),
    Mutant(
        "isolation: the tenant's term, and all that stands behind it",
        _QUERIES + "_filter",
        "[_tenant_term(tenant), *clauses]",
        "[*clauses]",
        (isolated,),
        (
            (_QUERIES + "_check_filter", "clauses[:1] == [_tenant_term(tenant)]", "True"),
            (_QUERIES + "check_hit", "if source[TENANT] != tenant or", "if False and"),
            _ASTRAY,
        ),
        vectors="opensearch",
    ),
    Mutant(
        "isolation: the tenant in a record's ID",
        _QUERIES + "record_id",
        "{tenant}~",
        "~",
        (isolated,),
        (
            ("core.vectors.opensearch.writes:check_bulk", "{tenant}~", "~"),
            (_QUERIES + "check_hit", 'f"{tenant}~', 'f"~'),
        ),
        vectors="opensearch",
    ),
    # what a context cites
    Mutant(
        "citations: what two chunks share stands once",
        _BLOCKS + "_added",
        "chunk.text[max(0, before.end_index - chunk.start_index) :]",
        "chunk.text",
        (cited,),
    ),
    Mutant("citations: what stands between two chunks", _BLOCKS + "_added", '(chunk.gap or "")', '" "', (cited,)),
    Mutant(
        "citations: only what is known to follow is joined",
        _BLOCKS + "follows",
        'len(chunk.gap or "") == apart',
        "True",
        (cited,),
    ),
    Mutant(
        "citations: one version in a block",
        _BLOCKS + "Block.meets",
        "self.chunk_id.generation != other.chunk_id.generation",
        "False",
        (cited,),
    ),
    Mutant(
        "citations: a chunk stands once",
        _BLOCKS + "with_block",
        "block.meets(added, adjacent=adjacent)",
        "False",
        (cited,),
    ),
    Mutant("citations: neighbours", _ASSEMBLE + "_tries", "if expand and", "if False and", (cited,)),
    Mutant(
        "citations: a hit that does not fit with its neighbours is tried alone",
        _ASSEMBLE + "_tries",
        "    yield (known.get(chunk_id, hit.chunk),)",
        "    if not expand:\n        yield (known.get(chunk_id, hit.chunk),)",
        (cited,),
    ),
    Mutant(
        "citations: header and markers count",
        _ASSEMBLE + "build_context",
        "budget.fits(list(_pieces(more)))",
        "budget.fits([piece for block in more for piece in block.pieces])",
        (cited,),
        ((_ASSEMBLE + "build_context", "> limit:", "> 2 * limit:"),),
    ),
    Mutant(
        "citations: the whole is counted where it could fit",
        "core.retrieval.budget:Budget.fits",
        "abs(estimate - self._limit) > doubt",
        "True",
        (cited,),
    ),
    Mutant(
        "citations: the page on which a block starts",
        _ASSEMBLE + "_citation",
        "page=block.chunks[0].page",
        "page=block.hit.chunk.page",
        (cited,),
    ),
    Mutant(
        "citations: pages start after form feeds",
        "core.loading.pages:page_at",
        "bisect_right(pages, offset)",
        "bisect_right(pages, offset - 1)",
        (cited,),
    ),
    # ready means retrievable
    Mutant(
        "ready: what another process wrote is seen",
        _EMBEDDED + "EmbeddedVectorStore._matrix",
        "matrix.version != version",
        "not matrix.version",
        (readied,),
        vectors="embedded",
    ),
    Mutant(
        "ready: a refresh is waited for",
        _OPENSEARCH + "_send",
        "wait=not self._is_serverless",
        "wait=False",
        (readied,),
        vectors="opensearch",
    ),
    # answers that explain themselves
    Mutant(
        "explain: k of a fusion",
        "core.ranking.fusion:fuse",
        "share(rank, ranking.weight, k)",
        "share(rank, ranking.weight, k + 1)",
        (explained,),
    ),
    Mutant(
        "explain: ranks are from 1",
        "core.ranking.fusion:fuse",
        "enumerate(ranking.chunk_ids, start=1)",
        "enumerate(ranking.chunk_ids, start=2)",
        (explained,),
    ),
    Mutant(
        "explain: whose weight is whose",
        _RANKER + "_found",
        "(vector, weights.vector), (bm25, weights.bm25)",
        "(vector, weights.bm25), (bm25, weights.vector)",
        (explained,),
    ),
    Mutant(
        "explain: a share falls with the rank",
        "core.ranking.fusion:share",
        "weight / (k + rank)",
        "weight / (k + rank + 1)",
        (explained,),
    ),
    Mutant(
        "explain: the penalty lowers",
        "core.ranking.mmr:value",
        "- (1.0 - weight) * penalty",
        "+ (1.0 - weight) * penalty",
        (explained,),
    ),
    Mutant("explain: lambda is of relevance", "core.ranking.mmr:value", "weight * score", "score", (explained,)),
    Mutant(
        "explain: the greatest likeness counts",
        "core.ranking.mmr:_after",
        "likeness <= one.penalty",
        "False",
        (explained,),
    ),
    Mutant(
        "explain: what min_score cuts takes no part",
        _RANKER + "_differing",
        "least is None or match.score >= least",
        "True",
        (explained,),
    ),
    Mutant(
        "explain: as many take part as the answer says",
        _RANKER + "__init__",
        "matches.by_vector[: scope.depth]",
        "matches.by_vector",
        (explained,),
    ),
    Mutant("explain: fused or not", _RANKER + "_judged", "if not self._options.fuse", "if True", (explained,)),
    Mutant(
        "explain: min_score of another kind cuts nothing",
        _RANKER + "order",
        "kind, least = scope.kind(scope.finder), None",
        "kind = scope.kind(scope.finder)",
        (explained, reasoned("a reranker that fails")),
    ),
    Mutant(
        "explain: what is not served has no rank",
        _SEARCH + "_State.hides",
        "return not is_current(self.sources.get((match.collection_id, match.source_id)), match.chunk_id)",
        "return False",
        (explained,),
    ),
    Mutant(
        "reason: what was cut is certain",
        _REASONS + "reason_of",
        "_score_reason(order) or _search_reason(bounded)",
        "_search_reason(bounded) or _score_reason(order)",
        (reasoned("always replaced"),),
    ),
    Mutant(
        "reason: the best that was cut",
        _REASONS + "_score_reason",
        "best_score=max(cut)",
        "best_score=min(cut)",
        (reasoned("below min_score"),),
    ),
    Mutant(
        "reason: of a reranker that fails",
        _RANKER + "order",
        "kind, least = scope.kind(scope.finder), None",
        "kind = scope.kind(scope.finder)",
        (reasoned("a reranker that fails"),),
    ),
    Mutant("reason: the bound", _REASONS + "_search_reason", "not bounded", "True", (reasoned("always replaced"),)),
    Mutant(
        "reason: words are missing",
        _REASONS + "_stock_reason",
        "len(order.signals) > len(hits)",
        "False",
        (reasoned("without a word"),),
    ),
    Mutant(
        "reason: the filter before what is in progress",
        _REASONS + "_stock_reason",
        "if not wordless or",
        "if not any(one.working for one in counts) and",
        (reasoned("filtered out"),),
    ),
    Mutant(
        "reason: a word in what the filter leaves out",
        _REASONS + "_stock_reason",
        " or _has_words_elsewhere(parts, tenant, scope, len(hits))",
        "",
        (reasoned("without a word"),),
    ),
    Mutant(
        "reason: no word in what the filter leaves out",
        _REASONS + "_has_words_elsewhere",
        ") > found",
        ") >= 0",
        (reasoned("without a word"),),
    ),
    Mutant(
        "reason: what is not served was not filtered",
        _REASONS + "_filter_reason",
        "served - sum(hit.hydrated for hit in hits)",
        "10**9",
        (reasoned("filter"),),
    ),
    Mutant(
        "reason: what is lost was not filtered",
        _REASONS + "_filter_reason",
        "matching(None) - matching(scope.filter)",
        "10**9",
        (reasoned("lost"),),
    ),
    Mutant(
        "reason: an orphan is in no counter",
        _REASONS + "_filter_reason",
        "sum(hit.hydrated for hit in hits)",
        "len(hits)",
        (reasoned("stray"),),
    ),
    Mutant(
        "reason: a value that nothing has",
        _REASONS + "_filter_reason",
        "if not matching(one)",
        "if False",
        (reasoned("unknown"),),
    ),
    Mutant(
        "reason: an answer that was cut",
        "core.http.limits:fit_retrieval",
        ', "reason": _cut_reason(len(result.hits))',
        "",
        (reasoned("too large"),),
    ),
    # what others have changes no answer
    Mutant(
        "interference: statistics of the tenant alone",
        _EMBEDDED + "EmbeddedVectorStore.search_text",
        "within = matrix.collections.one_of(query.collection_ids)",
        "within = matrix.collections.one_of(query.collection_ids) | True",
        (beside,),
        (
            (_EMBEDDED + "_key", "str(tenant)", '"all"'),
            (_EMBEDDED + "_match", "tenant=Tenant(tenant)", "tenant=Tenant('quiet')"),
        ),
        vectors="embedded",
    ),
    Mutant(
        "interference: statistics of the tenant's own records",
        _QUERIES + "statistics",
        '_filter(tenant, _terms("collection_id", query.collection_ids))',
        '{"bool": {"filter": []}}',
        (beside,),
        (("core.vectors.opensearch.client:Client.search", "check_search(tenant, body)", "pass"),),
        vectors="opensearch",
    ),
)


def named(start: str, vectors: str) -> list[Mutant]:
    """The mutants whose names begin so, of those that are tried on a vector store."""
    return [one for one in MUTANTS if one.name.startswith(start) and vectors == (one.vectors or "embedded")]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: ``seen`` is the first broken promise; empty: it survived."""

    name: str
    seen: str


def try_mutant(mutant: Mutant, options: Options, probes: Sequence[Probe] = EVERYTHING) -> Verdict:
    """Runs proofs on the engine without a protection until one turns red."""
    with switched_off(mutant):
        for probe in (*mutant.probes, *probes):
            try:
                for tally in probe(options):
                    if tally.problems:
                        return Verdict(mutant.name, tally.broken[0])
            except Exception as error:  # noqa: BLE001 - a proof that could not run has found nothing
                print(f"{mutant.name}: {error!r}")
    return Verdict(mutant.name, "")


def _work(job: tuple[int, Options]) -> Verdict:
    number, options = job
    return try_mutant(MUTANTS[number], options)


def _jobs(options: Options) -> list[tuple[int, Options]]:
    """Every mutant on the store that it is of, if that was asked for; those of none on one store."""
    plain = "embedded" if options.vectors == ALL else options.vectors
    jobs = []
    for number, mutant in enumerate(MUTANTS):
        if mutant.vectors in ("", plain) or options.vectors == ALL:
            jobs.append((number, replace(options, vectors=mutant.vectors or plain)))
    return jobs


def prove(options: Options, tell: Callable[[str], None]) -> Report:
    """Tries every mutant."""
    verdicts = list(spread(_work, _jobs(options), options.processes, tell))
    return {
        "tried": len(verdicts),
        "killed": sum(bool(verdict.seen) for verdict in verdicts),
        "survivors": [verdict.name for verdict in verdicts if not verdict.seen],
        "broken": [],
    }


def held(report: Report) -> bool:
    return not report["survivors"]


if __name__ == "__main__":
    main("mutants", prove, held=held, every_store=True)
