"""The authorizer lets a request through only with a token that the deployed one would accept."""

import base64
import hmac
import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from infra.local.authorizer import AUDIENCE, ISSUER, Authorizer, DevelopmentKey, KeyUnusable, Unauthorized


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    base = {"tenant": "acme", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600} | changes
    return {name: value for name, value in base.items() if value is not None}


def test_a_token_of_the_machine_s_own_key_is_accepted_with_or_without_its_scheme(key: DevelopmentKey) -> None:
    token = key.token("acme")
    for header in (f"Bearer {token}", f"bearer {token}", token):
        assert Authorizer(key).claims(header)["tenant"] == "acme"


def test_claims_arrive_as_strings(key: DevelopmentKey) -> None:
    token = key.sign(claims(tenant=["a", "b"], level=3, admin=True, aud=["x", AUDIENCE], exp=2**31))
    got = Authorizer(key).claims(f"Bearer {token}")
    assert got["tenant"] == "[a b]"
    assert got["level"] == "3"
    assert got["admin"] == "true"
    assert got["aud"] == f"[x {AUDIENCE}]"
    assert got["exp"] == str(2**31)


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"nbf": 2**31},
        {"iat": 2**31},
    ],
    ids=str,
)
def test_a_token_whose_claims_do_not_hold_is_refused(key: DevelopmentKey, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {key.sign(claims(**changes))}")


def test_a_token_of_another_key_is_refused(key: DevelopmentKey, other_key: DevelopmentKey) -> None:
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {other_key.token('acme')}")


def test_another_key_under_this_machine_s_identifier_is_refused(key: DevelopmentKey, other_key: DevelopmentKey) -> None:
    other_key.id = key.id
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {other_key.token('acme')}")


def test_the_right_key_under_another_identifier_is_refused(tmp_path: Path, key: DevelopmentKey) -> None:
    renamed = DevelopmentKey.in_folder(tmp_path)
    authorizer = Authorizer(DevelopmentKey.in_folder(tmp_path))
    renamed.id = "another"
    with pytest.raises(Unauthorized):
        authorizer.claims(f"Bearer {renamed.token('acme')}")


def by_hand(header: dict[str, str], sign: Callable[[bytes], bytes]) -> str:
    """A token that no library would make."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims())]
    signature = base64.urlsafe_b64encode(sign(b".".join(parts))).rstrip(b"=")
    return b".".join([*parts, signature]).decode()


def test_a_token_signed_with_the_public_key_as_a_shared_secret_is_refused(key: DevelopmentKey) -> None:
    public = key.public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    header = {"alg": "HS256", "typ": "JWT", "kid": key.id}
    token = by_hand(header, lambda signed: hmac.digest(public, signed, "sha256"))
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {token}")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", ""])
def test_an_unsigned_token_is_refused(key: DevelopmentKey, algorithm: str) -> None:
    token = by_hand({"alg": algorithm, "typ": "JWT", "kid": key.id}, lambda _: b"")
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {token}")


def test_a_token_without_its_signature_is_refused(key: DevelopmentKey) -> None:
    header, body, _ = key.token("acme").split(".")
    for token in (f"{header}.{body}.", f"{header}.{body}"):
        with pytest.raises(Unauthorized):
            Authorizer(key).claims(f"Bearer {token}")


def test_a_token_with_another_tenant_written_in_is_refused(key: DevelopmentKey) -> None:
    header, _, signature = key.token("acme").split(".")
    _, body, _ = key.token("other").split(".")
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(f"Bearer {header}.{body}.{signature}")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b.c", "Bearer é"])
def test_what_is_no_token_is_refused(key: DevelopmentKey, header: str | None) -> None:
    with pytest.raises(Unauthorized):
        Authorizer(key).claims(header)


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    first = DevelopmentKey.in_folder(folder)
    assert DevelopmentKey.in_folder(folder).id == first.id
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["key.pem"]


def test_a_file_that_is_no_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("nothing")
    with pytest.raises(KeyUnusable, match=r"key\.pem"):
        DevelopmentKey.in_folder(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyUnusable, match="file"):
        DevelopmentKey.in_folder(tmp_path / "file" / "data")
