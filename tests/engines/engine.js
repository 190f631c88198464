// Starts a DynamoDB engine on 127.0.0.1 and makes the table `locks` in it.
"use strict";

const http = require("http");
const net = require("net");
const path = require("path");
const { spawn } = require("child_process");

// A slow disk may take long to load an engine for the first time.
const STARTING_S = 120;

function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function call(port, action, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port, method: "POST",
      headers: { "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": `DynamoDB_20120810.${action}`, "X-Amz-Date": "x",
        Authorization: "AWS4-HMAC-SHA256 Credential=id/20000101/us-east-1/" +
          "dynamodb/aws4_request, SignedHeaders=host, Signature=0" } },
    (answer) => {
      let text = "";
      answer.on("data", (bytes) => { text += bytes; });
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
    });
    request.on("error", ({ message }) =>
      reject(new Error(`The engine does not answer ${action}: ${message}`)));
    request.end(JSON.stringify(body));
  });
}

// The engine says that it listens once it has the port, so it is this engine
// that answers there.  It runs in a process group of its own, so that a
// terminal's Ctrl-C reaches only this process, which then stops the engine.
async function startOnFreePort() {
  const port = await freePort();
  const child = spawn(path.join(__dirname, "start"),
    ["--host", "127.0.0.1", "--port", String(port)],
    { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  process.on("exit", () => child.kill("SIGKILL"));
  let said = "";
  const ended = new Promise((resolve) => {
    child.on("error", ({ message }) => resolve(message));
    child.on("close", (code, signal) =>
      resolve(`it ended with ${code ?? signal}, and said: ${said}`));
  });
  await new Promise((resolve, reject) => {
    const fail = (why) =>
      reject(new Error(`The engine does not start: ${why}`));
    const collect = (text) => {
      said = (said + text).slice(-2000);
      if (/istening/.test(said)) resolve();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    ended.then(fail);
    setTimeout(() => {
      fail(`it does not listen after ${STARTING_S} s, and said: ${said}`);
    }, STARTING_S * 1000).unref();
  });
  return { port, ended };
}

// Returns its port, and a promise that is kept once it has ended, with words
// that say how.  It is killed when this process exits (but not if this process
// is killed itself).
async function startEngine() {
  // Another process may have taken the free port meanwhile: then once more.
  const engine = await startOnFreePort().catch(startOnFreePort);
  const { status, text } = await call(engine.port, "CreateTable", {
    TableName: "locks",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "name", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "name", KeyType: "HASH" }] });
  if (status !== 200) {
    throw new Error(`The engine answers CreateTable with ${status}: ${text}`);
  }
  return engine;
}

module.exports = { startEngine };
