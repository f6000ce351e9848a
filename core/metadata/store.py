"""The metadata store of an engine: one DynamoDB table, read and written by one class for each kind of row."""

from core.metadata.collections import Collections
from core.metadata.documents import Documents
from core.metadata.dynamo import Table
from core.metadata.fields import Fields
from core.metadata.jobs import Jobs
from core.metadata.paging import Listings, PageTokens
from core.metadata.sweep_index import SweepIndex
from core.metadata.uploads import Uploads


class MetadataStore:
    """Every kind of row of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.collections = Collections(table)
        self.documents = Documents(table)
        self.fields = Fields(table)
        self.jobs = Jobs(table)
        self.uploads = Uploads(table)
        self.sweep_index = SweepIndex(table)
        self.listings = Listings(PageTokens(table))
