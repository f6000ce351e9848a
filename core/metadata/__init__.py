"""Rows in DynamoDB: `table` alone builds keys, `dynamo` alone speaks to the service, `transitions` alone changes
the state of documents and sources."""
