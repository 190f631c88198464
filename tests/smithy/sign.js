// Signs requests with @smithy/signature-v4, for tests/test_sigv4_random.cpp:
// node sign.js < requests > authorizations, both one to a line.
//
// A request comes raw, as it goes over the wire; smithy wants a query decoded
// into a map and every header once, so that is done here, and no more.
"use strict";

const readline = require("readline");
const { Sha256 } = require("@aws-crypto/sha256-js");
const { SignatureV4 } = require("@smithy/signature-v4");

// Refuses what no JavaScript string can hold, rather than change it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// Of percent sequences alone: '+' is a plus, a stray '%' is a '%'.
function decode(text) {
  const bytes = [];
  for (let i = 0; i < text.length; ++i) {
    const digits = text.slice(i + 1, i + 3);
    if (text[i] === "%" && /^[0-9a-f]{2}$/i.test(digits)) {
      bytes.push(Buffer.from(digits, "hex"));
      i += 2;
    } else {
      const character = String.fromCodePoint(text.codePointAt(i));
      bytes.push(Buffer.from(character));
      i += character.length - 1;
    }
  }
  return utf8.decode(Buffer.concat(bytes));
}

function queryMap(query) {
  const map = {};
  for (const piece of query.split("&").filter((text) => text !== "")) {
    const equals = piece.indexOf("=");
    const name = decode(equals < 0 ? piece : piece.slice(0, equals));
    const value = equals < 0 ? "" : decode(piece.slice(equals + 1));
    map[name] = [...(map[name] ?? []), value];
  }
  return map;
}

// Repeated headers become one, spelled as the first of them.
function headerMap(headers) {
  const map = {};
  const spelling = {};
  for (const [name, value] of headers) {
    const trimmed = value.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
    const known = spelling[name.toLowerCase()];
    if (known === undefined) {
      spelling[name.toLowerCase()] = name;
      map[name] = trimmed;
    } else {
      map[known] += "," + trimmed;
    }
  }
  return map;
}

async function authorization(request) {
  const signer = new SignatureV4({
    credentials: {
      accessKeyId: request.access_key_id,
      secretAccessKey: request.secret_access_key,
      sessionToken: request.session_token,
    },
    region: request.region,
    service: request.service,
    sha256: Sha256,
    uriEscapePath: request.escape_path,
    applyChecksum: request.apply_checksum,
  });
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: "https:",
      hostname: "unused",
      path: request.path,
      query: queryMap(request.query),
      headers: headerMap(request.headers),
      body: Buffer.from(request.body, "hex"),
    },
    { signingDate: new Date(request.unix_seconds * 1000) },
  );
  return signed.headers.authorization;
}

(async () => {
  const lines = readline.createInterface({ input: process.stdin });
  const answers = [];
  for await (const line of lines) {
    answers.push((await authorization(JSON.parse(line))) + "\n");
  }
  process.stdout.write(answers.join(""));
})();
