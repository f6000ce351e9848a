"""Names that the stand-ins for AWS's services go by on this machine."""

ACCOUNT = "123456789012"
REGION = "us-east-1"
TABLE = "weft-local"
BUCKET = "weft-local-uploads"
QUEUE = "weft-local-uploads"
DEAD_LETTERS = f"{QUEUE}-dead-letters"
