// An engine on 127.0.0.1, with the table `locks`, for what runs the programs
// that other people's builds make.
"use strict";

const fs = require("fs");
const http = require("http");
const net = require("net");
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

// Its port; it ends with this process.
async function startEngine() {
  const modules = "tests/node_modules";
  const dynoxide = `${modules}/@dynoxide/linux-x64/dynoxide`;
  const port = await freePort();
  const at = ["--host", "127.0.0.1", "--port", String(port)];
  const child = fs.existsSync(dynoxide) ? spawn(dynoxide, at) :
    spawn("node", [`${modules}/dynalite/cli.js`, ...at]);
  process.on("exit", () => child.kill("SIGKILL"));
  await new Promise((resolve, reject) => {
    let said = "";
    const listen = (text) => {
      said += text;
      if (/istening/.test(said)) resolve();
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("exit", () => reject(new Error(`no engine: ${said}`)));
  });
  const status = await call(port, "CreateTable", { TableName: "locks",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "name", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "name", KeyType: "HASH" }] });
  if (status !== 200) throw new Error(`CreateTable: ${status}`);
  return port;
}

module.exports = { startEngine };
