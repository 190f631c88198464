// The control port: JSON over HTTP, for tests and for curl.
//
//   POST   /lifetime      {"seconds": N}, of the keys that are issued; null: as
//                         they are asked for, else an hour
//   POST   /issue         {"seconds": N} -> keys
//   POST   /users         {"key", "secret", "token", "arn"}: whom STS knows
//   POST   /roles         {"arn", "external_id"}
//   POST   /web-identity  {"token", "seconds", "subject"}
//   POST   /imds          {"role", "region", "token_seconds",
//                         "forget_tokens"}
//   POST   /container     {"path", "authorization", "account_id"}
//   POST   /proxy         {"auth"}
//   POST   /mode          {"service": "sts", "mode": "open"|"refuse"|"hang"}
//   POST   /rules         a rule (mischief.js) behind those there are
//   DELETE /rules         none any more
//   GET    /log
//   GET    /secrets       secrets and tokens of all keys it has given out
//   POST   /forget        the log is empty again
//
// What is not told stays as it is.  A member that nobody knows gets 400 and
// {"error": "..."}.
"use strict";

const { demand } = require("../gateway/faults");
const { startJsonPort } = require("../gateway/json_port");
const { isoTime } = require("./issuer");

// Does with each member that is told what `deeds` say.
function apply(value, deeds) {
  for (const [name, deed] of Object.entries(deeds)) {
    if (value[name] !== undefined) deed(value[name]);
  }
}

// --- What is done ----------------------------------------------------------

function issue(aws, { seconds }) {
  const owner = `arn:aws:sts::${aws.account.id}:assumed-role/issued/by-hand`;
  const { key, secret, token, ends } = aws.issuer.issueFor(owner, seconds);
  return {
    AccessKeyId: key,
    SecretAccessKey: secret,
    SessionToken: token,
    Expiration: isoTime(ends),
    expires: ends,
  };
}

function addUser(aws, { key, secret, token = "", arn }) {
  aws.keys.add({ key, secret, token });
  if (arn !== undefined) aws.sts.users.set(key, arn);
}

function addRole(aws, value) {
  aws.sts.roles.set(value.arn, {
    externalId: value.external_id,
  });
}

function addWebIdentity(aws, value) {
  const subject = value.subject ?? "system:serviceaccount:default:locker";
  aws.sts.webIdentities.add(value.token, value.seconds, { subject });
}

function setImds({ imds }, value) {
  apply(value, {
    role: (role) => (imds.role = role),
    region: (region) => (imds.region = region),
    token_seconds: (time) => (imds.tokenSeconds = time),
    forget_tokens: (does) => does && imds.tokens.clear(),
  });
}

function setContainer({ container }, value) {
  apply(value, {
    path: (path) => (container.path = path),
    authorization: (wanted) => (container.authorization = wanted),
    account_id: (id) => (container.accountId = id),
  });
}

function setProxy({ proxy }, value) {
  Object.assign(proxy, value);
}

async function setMode(aws, { service = "*", mode }) {
  const all = Object.keys(aws.modes);
  demand(service === "*" || all.includes(service), '"service" is none of ours');
  for (const name of service === "*" ? all : [service]) {
    await aws.modes[name].set(mode);
  }
}

function forget(aws) {
  aws.log.forget();
  aws.proxy.forget();
}

// By method and path, with the members that there may be.
const ROUTES = {
  "POST /lifetime": [
    ["seconds"],
    ({ issuer }, { seconds }) => (issuer.lifetime = seconds),
  ],
  "POST /issue": [["seconds"], issue],
  "POST /users": [["key", "secret", "token", "arn"], addUser],
  "POST /roles": [["arn", "external_id"], addRole],
  "POST /web-identity": [["token", "seconds", "subject"], addWebIdentity],
  "POST /imds": [
    ["role", "region", "token_seconds", "forget_tokens"],
    setImds,
  ],
  "POST /container": [
    ["path", "authorization", "account_id"],
    setContainer,
  ],
  "POST /proxy": [["auth"], setProxy],
  "POST /mode": [["service", "mode"], setMode],
  "POST /rules": [null, (aws, rule) => aws.mischief.add(rule)],
  "DELETE /rules": [[], (aws) => aws.mischief.clear()],
  "GET /log": [
    [],
    (aws) => ({
      requests: aws.log.requests,
      proxy: aws.proxy.counts,
      issued: aws.issuer.owners.size,
    }),
  ],
  "GET /secrets": [
    [],
    ({ issuer }) => {
      const given = [...issuer.owners.keys()].map((key) => issuer.find(key));
      return { secrets: given.flatMap(({ secret, token }) => [secret, token]) };
    },
  ],
  "POST /forget": [[], forget],
};

// Returns its port.
function startControl(aws) {
  return startJsonPort(ROUTES, aws);
}

module.exports = { startControl };
