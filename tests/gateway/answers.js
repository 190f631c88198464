// Answers as DynamoDB gives them, and as others do that stand between it and a
// client.  An answer is {status, headers, body}: headers as [name, value, ...],
// the body a Buffer.
"use strict";

const crypto = require("node:crypto");

const SERVICE = "com.amazonaws.dynamodb.v20120810#";
const FRONT = "com.amazon.coral.service#";
const JSON_TYPE = "application/x-amz-json-1.0";

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; ++bit) {
    crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return crc;
});

// CRC-32 as in x-amz-crc32 (and Ethernet, gzip).
function crc32(bytes) {
  let crc = -1;
  for (let i = 0; i < bytes.length; ++i) {
    crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ bytes[i]) & 0xff];
  }
  return ~crc >>> 0;
}

// Unique, and of the form of DynamoDB's.
const ID_START = crypto
  .randomBytes(40)
  .reduce((text, byte) => text + (byte & 31).toString(32).toUpperCase(), "");
let ids = 0;

function freshId() {
  ids += 1;
  return ID_START + ids.toString(32).toUpperCase().padStart(12, "0");
}

// What DynamoDB's front end puts around a body.
function fromService(clock, status, body, type = JSON_TYPE) {
  const headers = ["Server", "Server"];
  if (clock.shown) headers.push("Date", clock.date());
  headers.push("Content-Type", type, "x-amzn-RequestId", freshId());
  headers.push("x-amz-crc32", String(crc32(body)));
  return { status, headers, body };
}

function error(clock, status, type, message) {
  const body = Buffer.from(JSON.stringify({ __type: type, message }));
  return fromService(clock, status, body);
}

// By whoever checks signatures.
function refusal(clock, code, message) {
  return error(clock, 400, FRONT + code, message);
}

function notFound(clock) {
  return error(clock, 404, FRONT + "UnknownOperationException", "");
}

const PROVISIONED =
  "The level of configured provisioned throughput for the table was" +
  " exceeded. Consider increasing your provisioning level with the" +
  " UpdateTable API.";

const FAILURES = {
  throttle: [400, "ProvisionedThroughputExceededException", PROVISIONED],
  500: [500, "InternalServerError", "Internal server error"],
  503: [503, "ServiceUnavailable", "Service is temporarily unavailable"],
};

// An error that DynamoDB reports about a table.
function ofTable(clock, code, message) {
  return error(clock, 400, SERVICE + code, message);
}

// By the kind of the fault.  `retryAfter` in ms, or undefined.
function failure(clock, kind, retryAfter) {
  const [status, code, message] = FAILURES[kind];
  const answer = error(clock, status, SERVICE + code, message);
  if (retryAfter !== undefined) {
    answer.headers.push("x-amz-retry-after", String(retryAfter));
  }
  return answer;
}

// Of somebody else.  A day old, by their clock: nobody may learn from it.
function fromStranger(clock, status, html) {
  const headers = ["Server", "portal"];
  if (clock.shown) {
    const date = new Date(clock.now() - 86400000).toUTCString();
    headers.push("Date", date);
  }
  headers.push("Content-Type", "text/html");
  return { status, headers, body: Buffer.from(html) };
}

function portal(clock) {
  return fromStranger(
    clock,
    200,
    "<!DOCTYPE html><html><head><title>Welcome</title></head>" +
      "<body>Please sign in to use this network.</body></html>\n",
  );
}

function empty(clock) {
  return fromStranger(clock, 200, "");
}

function badGateway(clock) {
  return fromStranger(
    clock,
    502,
    "<html><body><h1>502 Bad Gateway</h1></body></html>\n",
  );
}

function corrupted(answer) {
  const headers = [...answer.headers];
  const at = headers.indexOf("x-amz-crc32") + 1;
  headers[at] = String((Number(headers[at]) ^ 1) >>> 0);
  return { ...answer, headers };
}

module.exports = {
  badGateway,
  corrupted,
  empty,
  failure,
  fromService,
  notFound,
  ofTable,
  portal,
  refusal,
};
