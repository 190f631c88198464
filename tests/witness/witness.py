# What botocore makes of configurations: tests/test_key_sources.cpp asks, and it
# is told and tells as witness.js does.
#
# botocore 1.29 knows no AWS_ENDPOINT_URL_STS.  What it would send to STS goes
# where that points; otherwise it is left as it is, its signature for STS's own
# name included.
#
# A container's agent is given time, for this machine may be busy, and asked
# again at once.
import http.client
import json
import os
import sys
import urllib.parse

import botocore.awsrequest
import botocore.credentials
import botocore.loaders
import botocore.session
import botocore.utils

botocore.utils.ContainerMetadataFetcher.TIMEOUT_SECONDS = 20
botocore.utils.ContainerMetadataFetcher.SLEEP_TIME = 0
LOADER = botocore.loaders.Loader()  # Remembers what it has read.


def attempt(find):
    try:
        return find()
    except Exception as error:  # Whatever it is, it is a refusal.
        return {"refused": type(error).__name__}


def response(url, status, headers, body):
    class Raw:
        def stream(self, *_args, **_kwargs):
            yield body

    return botocore.awsrequest.AWSResponse(url, status, headers, Raw())


def relay(request, **_):
    # A later version goes there by itself.
    if not request.url.split("//")[1].startswith("sts."):
        return None
    there = urllib.parse.urlsplit(os.environ["AWS_ENDPOINT_URL_STS"])
    here = urllib.parse.urlsplit(request.url)
    headers = {"Host": here.netloc}
    for key, value in request.headers.items():
        text = value.decode() if isinstance(value, bytes) else value
        headers[key] = text
    path = here.path + ("?" + here.query if here.query else "")
    connection = http.client.HTTPConnection(there.netloc, timeout=30)
    try:
        connection.request(request.method, path or "/", request.body, headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    known = botocore.awsrequest.HeadersDict(answer.getheaders())
    return response(request.url, answer.status, known, body)


def session_of(combination):
    session = botocore.session.Session(profile=combination["profile"] or None)
    session.register_component("data_loader", LOADER)
    if combination["region"]:
        session.set_config_variable("region", combination["region"])
    session.register("before-send.sts", relay)
    return session


# Nobody is there to be asked for a code.
def no_code(_prompt):
    raise EOFError


def find_keys(combination):
    session = session_of(combination)
    chain = session.get_component("credential_provider")
    chain.get_provider("assume-role")._prompter = no_code
    keys = session.get_credentials()
    if keys is None:
        return {"refused": "none"}
    frozen = keys.get_frozen_credentials()
    return {
        "id": str(frozen.access_key),
        "secret": str(frozen.secret_key),
        "token": frozen.token or "",
    }


# Sends nothing: the request ends where the network would begin.
def find_target(combination):
    sent = []

    def keep(request, **_):
        sent.append(request)
        return response(request.url, 200, {}, b"{}")

    session = session_of(combination)
    session.register("before-send.dynamodb", keep)
    client = session.create_client(
        "dynamodb",
        aws_access_key_id="AKIDANY",
        aws_secret_access_key="any",
    )
    client.list_tables()
    authorization = sent[0].headers["Authorization"]
    if isinstance(authorization, bytes):
        authorization = authorization.decode()
    region = authorization.split("Credential=")[1].split("/")[2]
    return {"url": sent[0].url, "region": region}


def answer(combination):
    os.environ.clear()
    os.environ.update(combination["environment"])
    keys = attempt(lambda: find_keys(combination))
    target = attempt(lambda: find_target(combination))
    return {
        "name": combination["name"],
        "version": botocore.__version__,
        "keys": keys,
        "target": target,
    }


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
