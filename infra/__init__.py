"""What runs around the handlers: the template as data, and the stack on one machine."""
