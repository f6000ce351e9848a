"""One folder a Lambda function."""
