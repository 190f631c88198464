// Starts a DynamoDB engine on 127.0.0.1 and makes the table `locks` in it.
"use strict";

const http = require("http");
const net = require("net");
const path = require("path");
const { spawn } = require("child_process");

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
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode));
    });
    request.on("error", reject);
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
  const ended = new Promise((resolve) => { child.on("close", resolve); });
  await new Promise((resolve, reject) => {
    let said = "";
    const collect = (text) => {
      said += text;
      if (/istening/.test(said)) resolve();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    ended.then(() => reject(new Error(`The engine does not start: ${said}`)));
  });
  return { port, ended };
}

// Returns its port, and a promise that is kept once it has ended.  It is killed
// when this process exits (but not if this process is killed itself).
async function startEngine() {
  // Another process may have taken the free port meanwhile: then once more.
  const engine = await startOnFreePort().catch(startOnFreePort);
  const status = await call(engine.port, "CreateTable", { TableName: "locks",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "name", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "name", KeyType: "HASH" }] });
  if (status !== 200) throw new Error(`CreateTable: ${status}`);
  return engine;
}

module.exports = { startEngine };
