// What AWS's JavaScript SDK makes of configurations, for test_key_sources.cpp.
// It reads combinations and writes answers, both JSON, one to a line:
//
//   {"name", "environment": {..}, "profile", "region"}
//   {"name", "version", "keys": {"id", "secret", "token"},
//    "target": {"url", "region"}}
//
// The target is that of a request as it would go out.  What cannot be had is
// {"refused": NAME OF THE ERROR} in its place.  The files are in place already.
//
// Keys come from the client's own chain of providers.  Two things are set: each
// is asked once, for the SDK asks a container that refuses again after seconds;
// and given time, for this machine may be busy.
"use strict";

const http = require("node:http");
const readline = require("readline");
const { DynamoDBClient, ListTablesCommand } = require(
  "@aws-sdk/client-dynamodb",
);
const { version } = require("@aws-sdk/client-dynamodb/package.json");
const { defaultProvider } = require("@aws-sdk/credential-provider-node");

const PATIENCE_MS = 20000;

// Whoever asks the instance for its region allows a second, by two clocks.
const { request } = http;
http.request = (options, ...others) =>
  request({ ...options, timeout: PATIENCE_MS }, ...others);
AbortSignal.timeout = () => new AbortController().signal;

const silent = () => {};
const logger = {
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
};

function replaceEnvironment(environment) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
}

// `found`, or of what is thrown the name alone: its text may hold a secret.
async function attempt(find) {
  try {
    return await find();
  } catch (error) {
    return { refused: error.name };
  }
}

// What was asked for by an option; the rest is for the SDK to find.
function options(combination) {
  const chosen = { logger };
  if (combination.profile) chosen.profile = combination.profile;
  if (combination.region) chosen.region = combination.region;
  return chosen;
}

async function findKeys(combination) {
  const client = new DynamoDBClient({
    ...options(combination),
    credentialDefaultProvider: (init) =>
      defaultProvider({ ...init, maxRetries: 0, timeout: PATIENCE_MS }),
  });
  return client.config.credentials();
}

// Sends nothing: the request ends where the network would begin.
async function findTarget(combination, credentials) {
  let sent = null;
  const client = new DynamoDBClient({
    ...options(combination),
    credentials,
    maxAttempts: 1,
    requestHandler: {
      handle: async (request) => {
        sent = request;
        throw new Error("not to be sent");
      },
      updateHttpClientConfig: silent,
      httpHandlerConfigs: () => ({}),
    },
  });
  try {
    await client.send(new ListTablesCommand({}));
  } catch (error) {
    if (sent === null) throw error;
  }
  const port = sent.port ? `:${sent.port}` : "";
  const scope = sent.headers.authorization.split("Credential=")[1].split("/");
  return {
    url: `${sent.protocol}//${sent.hostname}${port}${sent.path}`,
    region: scope[2],
  };
}

async function answer(combination) {
  replaceEnvironment(combination.environment);
  const keys = await attempt(() => findKeys(combination));
  const any = { accessKeyId: "AKIDANY", secretAccessKey: "any" };
  const target = await attempt(() =>
    findTarget(combination, keys.refused ? any : keys),
  );
  return {
    name: combination.name,
    version,
    keys: keys.refused
      ? keys
      : {
          id: String(keys.accessKeyId),
          secret: String(keys.secretAccessKey),
          token: keys.sessionToken ?? "",
        },
    target,
  };
}

(async () => {
  const lines = readline.createInterface({ input: process.stdin });
  // One after the other: the environment is the process's.
  for await (const line of lines) {
    const found = await answer(JSON.parse(line));
    process.stdout.write(JSON.stringify(found) + "\n");
  }
  process.exit(0); // Whatever connection a provider has left open.
})();
