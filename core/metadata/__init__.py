"""The DynamoDB table: `table` alone builds keys, `dynamo` alone speaks to the service, `rows` says what rows hold.

The states of documents and sources are changed by `core.protocol.transitions` alone.
"""
