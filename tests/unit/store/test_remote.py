"""What answers of a remote store mean, and what a client may reveal."""

import json
import logging
from collections.abc import Callable, Iterator

import pytest
from obstore import exceptions

from bench.stores.seaweed import S3Server
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput, Unavailable, Unsupported
from lakevilla.store.adapters.answers import Answer
from lakevilla.store.open import open_adapter, open_store
from lakevilla.store.port import Changed, Created, Exists, Object, Store, Unanswered
from lakevilla.store.retry import Retrying
from tests.unit.store.answers import AnsweringServer, answering_server
from tests.unit.store.clocked import Clocked

SECRET = "SeCrEt-7h1s-15-h1dd3n"

REQUESTS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("k"),
    "get_range": lambda store: store.get_range("k", 0, 5),
    "head": lambda store: store.head("k"),
    "list": lambda store: list(store.list("")),
    "list_folders": lambda store: store.list_folders(""),
    "put": lambda store: store.put("k", b"x"),
    "create": lambda store: store.create("k", b"x"),
    "replace": lambda store: store.replace("k", b"x", '"tag"'),
    "delete": lambda store: store.delete("k"),
}
_CALLED = {
    "get_range": "get",
    "list_folders": "list",
    "create": "conditional put",
    "replace": "conditional put",
}
"""What errors call these requests; the others have their own names there."""


@pytest.fixture(scope="module")
def running() -> Iterator[AnsweringServer]:
    with answering_server() as server:
        yield server


@pytest.fixture
def server(running: AnsweringServer) -> AnsweringServer:
    running.status, running.code, running.hangs_up = 200, "", False
    running.seen.clear()
    running.conditions.clear()
    return running


def options(server: AnsweringServer) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "user",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": "eu-west-1",
        "AWS_ALLOW_HTTP": "true",
    }


@pytest.fixture
def store(server: AnsweringServer) -> Store:
    return open_adapter("s3://bucket/root", options(server), SystemEnvironment())


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_passing_trouble_is_unanswered_and_not_repeated_by_the_adapter(
    server: AnsweringServer, store: Store, name: str, status: int
) -> None:
    server.status, server.code = status, "ConditionalRequestConflict"
    with pytest.raises(Unanswered):
        REQUESTS[name](store)
    assert len(server.seen) == 1


@pytest.mark.parametrize("name", REQUESTS)
def test_lost_connection_is_unanswered(server: AnsweringServer, store: Store, name: str) -> None:
    server.hangs_up = True
    with pytest.raises(Unanswered):
        REQUESTS[name](store)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (401, ""), (400, "ExpiredToken")])
def test_refusal_is_unavailable_and_says_what_to_check(
    server: AnsweringServer, store: Store, name: str, status: int, code: str
) -> None:
    server.status, server.code = status, code
    # The answer to a HEAD has no body, so nothing says why.
    said = "check the credentials" if (name, status) != ("head", 400) else "a retry does not help"
    with pytest.raises(Unavailable, match=said) as failure:
        REQUESTS[name](store)
    key = "/" if name.startswith("list") else "k"
    assert f"the {_CALLED.get(name, name)} of {key!r}" in str(failure.value)


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "head"])
def test_missing_bucket_is_unavailable_and_no_missing_object(
    server: AnsweringServer, store: Store, name: str
) -> None:
    server.status, server.code = 404, "NoSuchBucket"
    with pytest.raises(Unavailable, match="bucket or container does not exist"):
        REQUESTS[name](store)


def test_failed_precondition_is_a_lost_race(server: AnsweringServer, store: Store) -> None:
    server.status, server.code = 412, "PreconditionFailed"
    assert store.create("k", b"x") == Exists()
    assert store.replace("k", b"x", '"tag"') == Changed()


def test_replace_of_a_missing_object_is_changed(server: AnsweringServer, store: Store) -> None:
    server.status, server.code = 404, "NoSuchKey"
    assert store.replace("k", b"x", '"tag"') == Changed()
    assert store.get("k") is None


def test_key_that_reads_like_an_answer_confuses_nobody(server: AnsweringServer, store: Store) -> None:
    server.status, server.code = 412, "PreconditionFailed"
    assert store.create("Server returned non-2xx status code: 409 <Code>x<", b"x") == Exists()
    server.status = 409
    with pytest.raises(Unanswered):
        store.create("<Code>BlobAlreadyExists<", b"x")


def test_store_without_conditional_writes_is_unsupported(server: AnsweringServer, store: Store) -> None:
    server.status, server.code = 501, "NotImplemented"
    with pytest.raises(Unsupported, match="conditional put"):
        store.create("k", b"x")


def test_conditions_of_gcs_are_generations(server: AnsweringServer) -> None:
    account = {"gcs_base_url": server.endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
    key = json.dumps({**account, "private_key_id": ""})
    gcs_options = {"google_service_account_key": key, "allow_http": "true"}
    store = open_adapter("gs://bucket/root", gcs_options, SystemEnvironment())
    server.status = 412
    assert store.create("k", b"x") == Exists()
    assert store.replace("k", b"x", "17") == Changed()
    wanted = [{"x-goog-if-generation-match": "0"}, {"x-goog-if-generation-match": "17"}]
    assert server.conditions == wanted


def test_conditions_of_azure_are_tags_and_its_conflict_decides(server: AnsweringServer) -> None:
    azure = {"account_name": "acc", "account_key": "c2VjcmV0", "endpoint": server.endpoint}
    store = open_adapter("az://container/root", {**azure, "allow_http": "true"}, SystemEnvironment())
    server.status, server.code = 409, "BlobAlreadyExists"
    assert store.create("k", b"x") == Exists()
    server.status, server.code = 412, "ConditionNotMet"
    assert store.replace("k", b"x", '"tag"') == Changed()
    assert server.conditions == [{"if-none-match": "*"}, {"if-match": '"tag"'}]
    server.status, server.code = 409, "ContainerBeingDeleted"
    with pytest.raises(Unanswered):
        store.create("k", b"x")


def test_delete_is_one_plain_request(server: AnsweringServer, store: Store) -> None:
    store.delete("a/b")
    assert server.seen == [("DELETE", "/bucket/root/a/b")]


def test_plain_http_must_be_allowed(server: AnsweringServer) -> None:
    careful = {**options(server), "AWS_ALLOW_HTTP": "false"}
    with pytest.raises(Unavailable, match="AWS_ALLOW_HTTP"):
        open_store("s3://bucket", careful).get("k")


def test_retries_reach_the_server_again_and_end(server: AnsweringServer, store: Store) -> None:
    server.status = 503
    with pytest.raises(Unavailable, match="did not answer 3 times"):
        Retrying(store, Clocked(), tries=3).get("k")
    assert len(server.seen) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_secrets_are_in_no_message_and_no_log(
    server: AnsweringServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.status, server.code = status, "NoSuchBucket"
    store = open_adapter("s3://bucket/root", options(server), SystemEnvironment())
    patient = Retrying(store, Clocked(), tries=2)
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as failure:
        patient.get("k")
    everything = f"{failure.value!r} {store!r} {patient!r} {store.url} {caplog.text}"
    assert SECRET not in everything
    assert "user" not in everything


def test_token_in_a_query_is_in_no_message(server: AnsweringServer) -> None:
    server.status = 500
    azure = {
        "azure_storage_account_name": "acc",
        "sas_key": f"sv=1&sig={SECRET}",
        "endpoint": server.endpoint,
    }
    store = open_adapter("az://container", {**azure, "allow_http": "true"}, SystemEnvironment())
    with pytest.raises(Unanswered) as failure:
        store.get("k")
    assert SECRET in server.seen[0][1]
    assert SECRET not in f"{failure.value!r} {store!r}"


def test_query_of_a_failed_url_is_cut_and_long_texts_too() -> None:
    text = f"Error performing GET http://host/k?sig={SECRET} in 1ms - HTTP error {'x' * 999}\nmore {SECRET}"
    answer = Answer(exceptions.GenericError(text), "k", exceptions)
    failure = answer.error("s3://bucket", "get")
    assert isinstance(failure, Unanswered)
    assert SECRET not in str(failure)
    assert len(str(failure)) < 400


def test_wrong_secret_is_unavailable(s3: S3Server) -> None:
    wrong = {**s3.storage_options, "AWS_SECRET_ACCESS_KEY": SECRET}
    with pytest.raises(Unavailable, match="SignatureDoesNotMatch") as failure:
        open_store(s3.new_url(), wrong).put("k", b"")
    assert SECRET not in str(failure.value)


def test_server_that_is_not_there_is_unavailable_in_the_end() -> None:
    nowhere = {
        "endpoint": "http://127.0.0.1:9",
        "allow_http": True,
        "access_key_id": "a",
        "secret_access_key": "b",
    }
    store = Retrying(open_adapter("s3://bucket", nowhere, SystemEnvironment()), Clocked())
    with pytest.raises(Unavailable, match="did not answer 8 times"):
        store.get("k")


def test_refused_credentials_are_asked_for_again(s3: S3Server) -> None:
    given = []

    def credentials() -> dict[str, object]:
        secret = SECRET if not given else s3.storage_options["AWS_SECRET_ACCESS_KEY"]
        given.append(secret)
        user = s3.storage_options["AWS_ACCESS_KEY_ID"]
        return {"access_key_id": user, "secret_access_key": secret, "token": None, "expires_at": None}

    plain = {key: value for key, value in s3.storage_options.items() if "KEY" not in key}
    store = open_store(s3.new_url(), plain, credentials=credentials)
    assert isinstance(store.create("k", b"x"), Created)
    found = store.get("k")
    assert isinstance(found, Object)
    assert len(given) == 2


@pytest.mark.parametrize(
    ("url", "storage_options"),
    [
        ("s3://bucket", {"AWS_SECRET_ACCES_KEY": SECRET}),
        ("s3://bucket", {"timeout": SECRET}),
        ("s3://bucket", {"skip_signature": SECRET}),
        ("gs://bucket", {"google_service_account_key": SECRET}),
        ("az://container", {"account_key": SECRET}),
        (f"s3://user:{SECRET}@bucket/x", {}),
        (f"az://container/x?sig={SECRET}", {}),
        ("memory://", {"bogus": SECRET}),
        ("/tmp/lake", {"bogus": SECRET}),
        ("/tmp/lake", {"fsync": SECRET}),
        (f"ftp://user:{SECRET}@host/x", {}),
        (f"file://{SECRET}/x", {}),
        ("s3://bucket/a/../b", {}),
        ("s3://", {}),
        ("abfss://container/x", {}),
    ],
)
def test_wrong_option_or_url_is_refused_without_its_value(
    url: str, storage_options: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput) as failure:
        open_store(url, storage_options)
    assert SECRET not in str(failure.value)
    assert failure.value.__cause__ is None
