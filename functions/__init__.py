"""The Lambda functions: one folder for each, with its handlers and its list of packages."""
