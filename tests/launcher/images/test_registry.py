import base64
import ssl

import pytest
import trustme

from nemotron.errors import LauncherError, UsageError
from nemotron.images.authorization import NotAuthorized, challenges
from nemotron.images.manifests import ImageNotFound, RegistryUnreachable
from nemotron.images.reference import parse
from nemotron.images.registry import Registry, RegistrySettings, is_loopback
from tests.fakes.registry import FakeRegistry
from tests.launcher.images.conftest import harness, login

PINNED = "@sha256:" + "ab" * 32


def basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


# What a name stands for


def test_records_the_digest_of_the_index_and_of_the_platform_apart(client, fake):
    registry = fake()
    resolved = client().resolve(harness(registry))
    assert resolved.index_digest == registry.image.index_digest
    assert resolved.platform_digest == registry.image.platform_digest("linux/amd64")
    assert str(resolved.pinned) == f"{registry.host}/team/harness@{registry.image.index_digest}"


def test_follows_an_index_to_the_platform_that_is_asked_for(client, fake):
    registry = fake()
    resolved = client().resolve(harness(registry), "linux/arm64")
    assert resolved.platform_digest == registry.image.platform_digest("linux/arm64/v8")


def test_a_platform_that_is_not_there_is_answered_with_those_that_are(client, fake):
    with pytest.raises(ImageNotFound, match=r"no platform 'windows/amd64': it has linux/amd64, linux/arm64/v8; "):
        client().resolve(harness(fake()), "windows/amd64")


def test_a_tag_without_an_index_has_the_digest_of_its_platform_only(client, fake):
    registry = fake()
    digest = registry.push_single("team/single", "1", layers=[b"x" * 1000])
    resolved = client().resolve(parse(f"{registry.host}/team/single:1"))
    assert (resolved.index_digest, resolved.platform_digest, resolved.digest) == (None, digest, digest)
    assert resolved.size > 1000


def test_a_pinned_name_needs_no_contact(client, fake):
    registry = fake()
    resolved = client().resolve(harness(registry, PINNED))
    assert resolved.digest == PINNED[1:] and not registry.requests


# How little is asked


def test_asks_with_head_first(client, fake):
    registry = fake()
    client().resolve(harness(registry))
    assert [call.method for call in registry.requests if ":1.0" in call.path or call.path.endswith("1.0")] == ["HEAD"]


@pytest.mark.parametrize("status", [400, 405, 500])
def test_asks_with_get_where_head_is_refused(client, fake, status):
    registry = fake(refuses_head=status)
    assert client().resolve(harness(registry)).index_digest == registry.image.index_digest


def test_computes_a_digest_that_the_registry_does_not_name(client, fake):
    registry = fake(omits_digest=True)
    assert client().resolve(harness(registry)).index_digest == registry.image.index_digest


def test_many_looks_at_one_image_cost_one_head_each(client, fake, tmp_path):
    registry = fake()
    for _ in range(5):
        client(cache=tmp_path).resolve(harness(registry))
    assert (registry.count("HEAD"), registry.count("GET")) == (5, 2)


def test_a_damaged_cache_is_read_anew(client, fake, tmp_path):
    registry = fake()
    before = client(cache=tmp_path).resolve(harness(registry))
    for path in (tmp_path / "manifests").iterdir():
        path.write_bytes(b"{}")
    assert client(cache=tmp_path).resolve(harness(registry)) == before


def test_a_body_that_is_not_what_its_digest_says_is_not_believed(client, fake):
    with pytest.raises(RegistryUnreachable, match="not what its digest says"):
        client().resolve(harness(fake(lies=True)))


# Who asks

CHALLENGES = [
    'Bearer realm="{realm}",service="{service}",scope="repository:{repository}:pull"',
    'Bearer scope="repository:{repository}:pull,push", service="{service}",realm="{realm}"',
    'bearer Realm="{realm}"',
    'Basic realm="old", Bearer service={service}, realm="{realm}"',
]


@pytest.mark.parametrize("challenge", CHALLENGES)
@pytest.mark.parametrize("token_field", ["token", "access_token"])
def test_anybody_gets_a_token_where_the_challenge_says(client, fake, challenge, token_field):
    registry = fake(auth="bearer", challenge=challenge, token_field=token_field)
    assert client().resolve(harness(registry)).index_digest
    asked = next(call.path for call in registry.requests if call.path.startswith("/token"))
    assert "scope=repository%3Ateam%2Fharness%3Apull" in asked


def test_one_token_serves_until_it_expires(client, fake, clock):
    registry = fake(auth="bearer", expires_in=300)
    registry_client = client()
    registry_client.resolve(harness(registry))
    registry_client.resolve(harness(registry))
    assert len(registry.tokens) == 1
    clock.now += 295
    registry_client.resolve(harness(registry))
    assert len(registry.tokens) == 2


def test_buys_a_new_token_when_one_ends_early_even_at_another_realm(client, fake):
    registry = fake(auth="bearer", token_uses=1, realms=["/token", "/v3/sign", "/elsewhere"])
    client().resolve(harness(registry))
    bought = [call.path.partition("?")[0] for call in registry.requests if not call.path.startswith("/v2/")]
    assert bought == ["/token", "/v3/sign", "/elsewhere"]


def test_the_login_goes_to_the_realm_and_the_token_to_the_registry(client, fake):
    realm = fake(login=("ann", "not-a-real-password"))
    registry = fake(auth="bearer", realms=[realm.root + "/token"])
    registry.tokens = realm.tokens
    keyring = login(registry, auth=basic("ann", "not-a-real-password"))
    client(keyring=keyring).resolve(harness(registry))
    assert {call.authorization for call in realm.requests} == {"Basic " + basic("ann", "not-a-real-password")}
    assert {call.authorization for call in registry.requests} == {None, "Bearer fake-token-1"}


def test_an_identity_token_is_exchanged_for_a_token(client, fake):
    registry = fake(auth="bearer", login=("ann", "unused"), token_field="access_token")
    client(keyring=login(registry, identitytoken="not-a-real-token")).resolve(harness(registry))
    asked = next(call for call in registry.requests if call.method == "POST")
    assert asked.form["grant_type"] == "refresh_token" and asked.form["refresh_token"] == "not-a-real-token"


def test_a_token_is_not_sent_where_a_blob_is_redirected_to(client, fake):
    storage, registry = fake(), fake(auth="bearer")
    registry.push_single("team/big", "1", layers=[b"content"])
    storage.blobs, registry.rules.blobs_at = registry.blobs, storage.root
    reference, registry_client = parse(f"{registry.host}/team/big:1"), client()
    manifest = registry_client.manifest(reference)
    with registry_client.layer(reference, manifest.layers[0]) as chunks:
        assert b"".join(chunks) == b"content"
    assert [call.authorization for call in storage.requests] == [None]


def test_basic_is_answered_with_the_login(client, fake):
    registry = fake(auth="basic", login=("$oauthtoken", "sk-not-a-real-key"))
    keyring = login(registry, username="$oauthtoken", password="sk-not-a-real-key")
    assert client(keyring=keyring).resolve(harness(registry)).index_digest == registry.image.index_digest


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_a_refused_login_says_how_to_log_in_and_shows_no_password(client, fake, auth):
    registry = fake(auth=auth, login=("ann", "right"))
    with pytest.raises(NotAuthorized, match="docker login") as refusal:
        client(keyring=login(registry, auth=basic("ann", "sk-not-a-real-key"))).resolve(harness(registry))
    assert "sk-not-a-real-key" not in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("challenge", ["Negotiate", "Bearer service=here", 'Bearer realm="not a url"', ""])
def test_a_challenge_that_cannot_be_met_is_one_line(client, fake, challenge):
    with pytest.raises(NotAuthorized) as refusal:
        client().resolve(harness(fake(auth="bearer", challenge=challenge)))
    assert "\n" not in str(refusal.value)


def test_a_realm_in_plain_text_gets_nothing_from_a_registry_behind_tls(client, fake, tmp_path):
    realm = fake()
    registry, settings = behind_tls(fake, tmp_path, auth="bearer", realms=[realm.root + "/token"])
    with pytest.raises(NotAuthorized, match="plain text"):
        client(settings).resolve(harness(registry))
    assert not realm.requests


def test_reads_several_challenges_in_one_header():
    read = challenges(['Basic realm="a, Bearer b", Bearer scope="repository:x:pull,push",realm="https://t"'])
    assert [(one.scheme, one.parameters) for one in read] == [
        ("basic", {"realm": "a, Bearer b"}),
        ("bearer", {"scope": "repository:x:pull,push", "realm": "https://t"}),
    ]


# What goes wrong


def test_waits_as_long_as_a_busy_registry_asks(client, fake, clock):
    registry = fake(busy_after=0, busy_for=2, retry_after="7")
    assert client().resolve(harness(registry)).index_digest == registry.image.index_digest
    assert clock.slept == [7, 7]


def test_an_empty_quota_is_reported_and_not_hammered(client, fake):
    registry = fake(busy_after=3, retry_after="1")
    client().resolve(harness(registry))
    asked = len(registry.requests)
    with pytest.raises(RegistryUnreachable, match="by its digest, which needs no request"):
        client().resolve(harness(registry))
    assert len(registry.requests) - asked <= 5


def test_a_registry_that_wants_an_hour_is_not_waited_for(client, fake, clock):
    with pytest.raises(RegistryUnreachable, match="asks for 3600 s"):
        client().resolve(harness(fake(busy_after=0, retry_after="3600")))
    assert not clock.slept


def test_a_wait_may_be_given_as_a_date(client, fake, clock):
    registry = fake(busy_after=0, busy_for=1, retry_after="Fri, 31 Dec 1999 23:59:59 GMT")
    client().resolve(harness(registry))
    assert len(clock.slept) == 1 and clock.slept[0] < 2


def test_a_name_that_is_not_there_is_not_found(client, fake):
    with pytest.raises(ImageNotFound, match=r"team/harness:2.0: .* has no such image"):
        client().resolve(harness(fake(), ":2.0"))


def test_nobody_there_is_unreachable(client, fake):
    with FakeGone() as host, pytest.raises(RegistryUnreachable, match="cannot be reached"):
        client().resolve(parse(f"{host}/team/harness:1.0"))


# TLS


def test_trusts_the_bundle_that_is_named(client, fake, tmp_path):
    registry, settings = behind_tls(fake, tmp_path)
    assert client(settings).resolve(harness(registry)).index_digest == registry.image.index_digest


def test_a_bundle_that_is_none_is_refused(tmp_path):
    (tmp_path / "bundle.pem").write_text("hello")
    with pytest.raises(UsageError, match="SSL_CERT_FILE"):
        Registry(RegistrySettings.of({"HOME": str(tmp_path), "SSL_CERT_FILE": str(tmp_path / "bundle.pem")}))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("localhost:1", True),
        ("[::1]:5000", True),
        ("10.0.0.1:5000", False),
        ("localhost.example", False),
        ("nvcr.io", False),
    ],
)
def test_plain_http_is_for_this_machine_only(host, expected):
    assert is_loopback(host) is expected


def test_other_hosts_are_never_asked_in_plain_text(client, monkeypatch):
    with pytest.raises(LauncherError, match="cannot be reached"):
        client().resolve(parse("registry.invalid:5000/team/harness:1.0"))


def test_insecure_registries_are_named_in_the_environment():
    settings = RegistrySettings.of({"HOME": "/nowhere", "NEMOTRON_INSECURE_REGISTRIES": "a.example:5000, b.example"})
    assert settings.insecure == {"a.example:5000", "b.example"}


def behind_tls(fake, tmp_path, **rules):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "bundle.pem"))
    return fake(tls=context, **rules), RegistrySettings(certificates=tmp_path / "bundle.pem")


class FakeGone:
    """The address of a server that has just gone."""

    def __enter__(self) -> str:
        with FakeRegistry() as registry:
            return registry.host

    def __exit__(self, *_: object) -> None: ...
