// The control port: JSON over HTTP, for tests and for curl.
//
//   POST   /lifetime      {"seconds": N}, of the keys that are issued; null: as
//                         they are asked for, else an hour
//   POST   /issue         {"seconds": N} -> keys
//   POST   /clock         {"offset_s": N, "date": false}, either or both
//   POST   /account       {"account_id": "123456789012"}
//   POST   /users         {"key", "secret", "token", "arn"}: whom STS knows
//   POST   /roles         {"arn", "external_id", "sources": [key, ARN or "*"],
//                         "max_duration"}
//   POST   /web-identity  {"token", "seconds", "subject"}
//   POST   /sts           {"region"}: for which alone signatures are taken
//   POST   /sso           {"tokens": [{"token", "seconds"}],
//                         "roles": [{"account_id", "role_name"}]}
//   POST   /oidc          {"clients": [{"id", "secret", "seconds"}],
//                         "refresh_tokens": [{"token", "client_id",
//                         "seconds"}], "access_seconds", "rotate"}
//   POST   /signin        {"refresh_tokens": [{"token", "client_id", "seconds",
//                         "key": the private key of its owner, in PEM}],
//                         "once": whether each is good for one use}
//   POST   /imds          {"role", "region", "v1", "put_status",
//                         "token_seconds", "forget_tokens", "same_for",
//                         "extended"}
//   POST   /container     {"path", "authorization", "role_arn", "account_id"}
//   POST   /proxy         {"auth", "refuse", "routes": {"host:port": port}}
//   POST   /mode          {"service": "sts", "mode": "open"|"refuse"|"hang"}
//   POST   /rules         a rule (mischief.js) behind those there are
//   DELETE /rules         none any more
//   GET    /log
//   GET    /secrets       secrets and tokens of all keys it has given out
//   POST   /forget        the log is empty again
//
// What is not told stays as it is.  What is not understood gets 400 and
// {"error": "..."}, and changes nothing.
"use strict";

const { checkMembers, demand } = require("../gateway/faults");
const { setClock } = require("../gateway/control");
const { startJsonPort } = require("../gateway/json_port");
const { isoTime } = require("./issuer");
const { pointOf } = require("./signin");

// --- What members must be --------------------------------------------------

const text = (value) => typeof value === "string" && value !== "";
const flag = (value) => typeof value === "boolean";
const seconds = (value) =>
  Number.isInteger(value) && Math.abs(value) <= 100 * 366 * 86400;
const count = (value) => Number.isInteger(value) && value >= 0;
const account = (value) => text(value) && /^\d{12}$/.test(value);
const maybe = (holds) => (value) => value === null || holds(value);
const texts = (value) => Array.isArray(value) && value.every(text);
const ports = (value) =>
  typeof value === "object" &&
  value !== null &&
  Object.values(value).every(count);
// Objects with all of these members and no other.
const list = (members) => (value) =>
  Array.isArray(value) && value.every((one) => isWhole(one, members));

function isWhole(value, members) {
  checkMembers(value, Object.keys(members));
  return Object.entries(members).every(([name, holds]) => holds(value[name]));
}

// Members that must be there, and others that may be.
function check(value, must, may = {}) {
  checkMembers(value, [...Object.keys(must), ...Object.keys(may)]);
  for (const [name, holds] of Object.entries({ ...must, ...may })) {
    const isTold = value[name] !== undefined;
    demand(isTold || may[name] !== undefined, `"${name}" is not told`);
    demand(!isTold || holds(value[name]), `"${name}" is wrong`);
  }
}

// Does with each member that is told what `deeds` say.
function apply(value, deeds) {
  for (const [name, deed] of Object.entries(deeds)) {
    if (value[name] !== undefined) deed(value[name]);
  }
}

// --- What is done ----------------------------------------------------------

function issue(aws, value) {
  check(value, { seconds });
  const owner = `arn:aws:sts::${aws.account.id}:assumed-role/issued/by-hand`;
  const { key, secret, token, ends } = aws.issuer.issueFor(
    owner,
    value.seconds,
  );
  return {
    AccessKeyId: key,
    SecretAccessKey: secret,
    SessionToken: token,
    Expiration: isoTime(ends),
    expires: ends,
  };
}

function addUser(aws, value) {
  const may = { token: (token) => typeof token === "string", arn: text };
  check(value, { key: text, secret: text }, may);
  const { key, secret, token = "", arn } = value;
  aws.keys.add({ key, secret, token });
  if (arn !== undefined) aws.sts.users.set(key, arn);
}

function addRole(aws, value) {
  const may = { external_id: text, sources: texts, max_duration: count };
  check(value, { arn: text }, may);
  aws.sts.roles.set(value.arn, {
    externalId: value.external_id,
    sources: value.sources ?? ["*"],
    maxDuration: value.max_duration ?? 3600,
  });
}

function addWebIdentity(aws, value) {
  check(value, { token: text, seconds }, { subject: text });
  const subject = value.subject ?? "system:serviceaccount:default:locker";
  aws.sts.webIdentities.add(value.token, value.seconds, { subject });
}

function setSso({ sso }, value) {
  const roles = list({ account_id: account, role_name: text });
  const tokens = list({ token: text, seconds });
  check(value, {}, { tokens, roles: maybe(roles) });
  apply(value, {
    tokens: (all) =>
      all.forEach((one) => sso.tokens.add(one.token, one.seconds)),
    roles: (all) => (sso.roles = all),
  });
}

function setOidc({ oidc }, value) {
  const clients = list({ id: text, secret: text, seconds });
  const tokens = list({ token: text, client_id: text, seconds });
  const numbers = { access_seconds: seconds, rotate: flag };
  check(value, {}, { clients, refresh_tokens: tokens, ...numbers });
  apply(value, {
    clients: (all) =>
      all.forEach(({ id, secret, seconds: time }) =>
        oidc.clients.add(id, time, { secret }),
      ),
    refresh_tokens: (all) =>
      all.forEach(({ token, client_id: clientId, seconds: time }) =>
        oidc.refreshTokens.add(token, time, { clientId, seconds: time }),
      ),
    access_seconds: (time) => (oidc.accessSeconds = time),
    rotate: (does) => (oidc.rotates = does),
  });
}

function setSignin({ signin }, value) {
  const tokens = list({ token: text, client_id: text, seconds, key: text });
  check(value, {}, { refresh_tokens: tokens, once: flag });
  apply(value, {
    refresh_tokens: (all) =>
      all.forEach(({ token, client_id: clientId, seconds: time, key }) =>
        signin.refreshTokens.add(token, time, {
          clientId,
          seconds: time,
          point: pointOf(key),
        }),
      ),
    once: (is) => (signin.once = is),
  });
}

function setImds({ imds }, value) {
  check(
    value,
    {},
    {
      ...{
        role: maybe(text),
        region: text,
        v1: flag,
        put_status: maybe(count),
      },
      ...{ token_seconds: maybe(seconds), forget_tokens: flag },
      ...{ same_for: count, extended: flag },
    },
  );
  apply(value, {
    role: (role) => (imds.role = role),
    region: (region) => (imds.region = region),
    v1: (v1) => (imds.v1 = v1),
    put_status: (status) => (imds.putStatus = status),
    token_seconds: (time) => (imds.tokenSeconds = time),
    forget_tokens: (does) => does && imds.tokens.clear(),
    same_for: (time) => (imds.sameFor = time),
    extended: (is) => (imds.extended = is),
  });
}

function setContainer({ container }, value) {
  const may = { path: text, role_arn: text, account_id: maybe(account) };
  check(value, {}, { ...may, authorization: maybe(text) });
  apply(value, {
    path: (path) => (container.path = path),
    authorization: (wanted) => (container.authorization = wanted),
    role_arn: (arn) => (container.roleArn = arn),
    account_id: (id) => (container.accountId = id),
  });
}

function setProxy({ proxy }, value) {
  check(value, {}, { auth: maybe(text), refuse: maybe(count), routes: ports });
  for (const name of ["auth", "refuse", "routes"]) {
    if (value[name] !== undefined) proxy[name] = value[name];
  }
}

async function setMode(aws, value) {
  check(value, { mode: text }, { service: text });
  const { service = "*", mode } = value;
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

const checked = (must, act) => (aws, value) => {
  check(value, must);
  act(aws, value);
};

const ROUTES = {
  "POST /lifetime": [
    null,
    checked({ seconds: maybe(seconds) }, ({ issuer }, value) => {
      issuer.lifetime = value.seconds;
    }),
  ],
  "POST /issue": [null, issue],
  "POST /clock": [
    ["offset_s", "date"],
    (aws, value) => setClock(aws.clock, value),
  ],
  "POST /account": [
    null,
    checked({ account_id: account }, (aws, value) => {
      aws.account.id = value.account_id;
    }),
  ],
  "POST /users": [null, addUser],
  "POST /roles": [null, addRole],
  "POST /web-identity": [null, addWebIdentity],
  "POST /sts": [
    null,
    checked({ region: maybe(text) }, ({ sts }, { region }) => {
      sts.rules.region = region;
    }),
  ],
  "POST /sso": [null, setSso],
  "POST /oidc": [null, setOidc],
  "POST /signin": [null, setSignin],
  "POST /imds": [null, setImds],
  "POST /container": [null, setContainer],
  "POST /proxy": [null, setProxy],
  "POST /mode": [null, setMode],
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
