"""What SAM makes of the template, for a linter: faults show there that the short form hides.

Needs the SAM CLI's own environment: ``.venv-sam/bin/python -m infra.transform > FILE``.
"""

import json
import os
import sys

from samtranslator.translator.transform import (  # type: ignore[import-not-found] # in the SAM CLI's environment alone
    transform,
)

from infra.template import Template, load

PARAMETERS = {"TokenIssuer": "https://issuer.example", "TokenAudience": "weft"}


class _NoManagedPolicies:
    """The template names none of AWS's own policies, so none has to be looked up."""

    def load(self) -> dict[str, str]:
        return {}


def transformed() -> Template:
    """The template as CloudFormation sees it, the functions' code standing in a bucket."""
    template = load()
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = {"Bucket": "artifacts", "Key": "artifact.zip"}
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # SAM asks for one, and calls nothing there
    answer: Template = transform(template, PARAMETERS, _NoManagedPolicies())
    return answer


if __name__ == "__main__":
    json.dump(transformed(), sys.stdout, indent=1)
