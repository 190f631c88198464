// What AWS's own JavaScript providers make of their environment: a line of
// JSON, {"key", "secret", "token", "expires"}, or {"refused": "..."}.
// tests/test_standins.cpp lets them loose on the stand-ins, which are right
// only if these take them for AWS.
"use strict";

const { defaultProvider } = require("@aws-sdk/credential-provider-node");

async function main() {
  // Time enough, for this machine may be busy.
  const find = defaultProvider({ maxRetries: 0, timeout: 20000 });
  const keys = await find();
  return {
    key: keys.accessKeyId,
    secret: keys.secretAccessKey,
    token: keys.sessionToken,
    expires: Math.floor(keys.expiration.getTime() / 1000),
  };
}

main()
  .catch((problem) => ({ refused: problem.message }))
  .then((outcome) => console.log(JSON.stringify(outcome)));
