"""The JWT authorizer of the HTTP API, and the key that signs tokens for it on this machine.

Every token is verified as the deployed authorizer verifies it. The only difference is the key: there it is the
identity provider's, here it is generated once in the data folder.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://weft.local"
AUDIENCE = "weft"
KEY_FILE = "key.pem"
DEFAULT_LIFE_S = 8 * 3600


class Unauthorized(Exception):
    """The gateway answers 401. The text says why, for the ``www-authenticate`` header."""


class KeyUnusable(Exception):
    """The file of the development key cannot be used."""


class DevelopmentKey:
    """An RSA key that only this machine has."""

    def __init__(self, private: rsa.RSAPrivateKey) -> None:
        self._private = private
        self.public = private.public_key()
        encoded = self.public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id = hashlib.sha256(encoded).hexdigest()[:16]

    @classmethod
    def in_folder(cls, folder: Path) -> "DevelopmentKey":
        """The folder's key, generated when there is none. Two processes that start together get the same one.

        Raises:
            KeyUnusable: the file there holds no RSA key, or cannot be written or read.
        """
        path = folder / KEY_FILE
        try:
            if not path.exists():
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write_once(path)
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise KeyUnusable(f"{path} cannot be used: {error.strerror}") from error
        except ValueError:
            private = None
        if not isinstance(private, rsa.RSAPrivateKey):
            raise KeyUnusable(f"{path} holds no RSA key; remove it, and a new one is made")
        return cls(private)

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A token of exactly these claims."""
        return jwt.encode(dict(claims), self._private, algorithm="RS256", headers={"kid": self.id})

    def token(self, tenant: str, claim: str = "tenant", life_s: int = DEFAULT_LIFE_S) -> str:
        """A token for one tenant, valid from now for ``life_s`` seconds."""
        now = int(time.time())
        return self.sign(
            {claim: tenant, "sub": tenant, "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + life_s}
        )


def _write_once(path: Path) -> None:
    """Writes a new key, readable by its owner alone, unless another process was faster."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(encoded)
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()


class Authorizer:
    """Verifies the token of a request."""

    def __init__(self, key: DevelopmentKey) -> None:
        self._key = key

    def claims(self, authorization: str | None) -> dict[str, str]:
        """The verified claims, as strings, from an ``Authorization`` header.

        RS256 with this machine's key identifier only; ``iss``, ``aud`` and ``exp`` must be there and hold, ``nbf``
        and ``iat`` when they are there.

        Raises:
            Unauthorized: there is no token, or it does not hold.
        """
        if not authorization:
            raise Unauthorized("")
        scheme, _, rest = authorization.strip().partition(" ")
        token = rest.strip() if scheme.lower() == "bearer" else authorization.strip()
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") != "RS256" or header.get("kid") != self._key.id:
                raise Unauthorized("the token is signed in another way or with another key")
            claims = jwt.decode(
                token,
                self._key.public,
                algorithms=["RS256"],
                audience=AUDIENCE,
                issuer=ISSUER,
                options={"require": ["iss", "aud", "exp"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthorized(str(error)) from error
        return {name: _as_text(value) for name, value in claims.items()}


def _as_text(value: Any) -> str:
    """A claim as the gateway hands it on: arrays as ``[a b]``, everything else as its JSON text without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{' '.join(_as_text(item) for item in value)}]"
    return json.dumps(value)
