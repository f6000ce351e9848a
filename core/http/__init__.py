"""What every HTTP function shares: the tenant of the verified claim, strict input, problem+json, answers' size."""
