// Answers as AWS's key services give them: {status, type, headers, document} or
// {status, type, headers, text}.  A document is a plain object until it is
// sent, so that a fault can change it.
"use strict";

const crypto = require("node:crypto");

const XML = "text/xml";
const JSON_TYPE = "application/json";

function escape(text) {
  const names = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };
  return String(text).replace(/[<>&"]/g, (character) => names[character]);
}

function elements(value, indent) {
  if (typeof value !== "object") return escape(value);
  const lines = Object.entries(value).map(
    ([name, inner]) =>
      `${indent}<${name}>${elements(inner, indent + "  ")}</${name}>`,
  );
  return `\n${lines.join("\n")}\n${indent.slice(2)}`;
}

// `document` has one member, the root; "xmlns" in it is its name space.
function xml(document) {
  const [[root, { xmlns, ...value }]] = Object.entries(document);
  return `<${root} xmlns="${xmlns}">${elements(value, "  ")}</${root}>\n`;
}

function json(status, document, headers = []) {
  return { status, type: JSON_TYPE, headers, document };
}

function plain(status, text, headers = []) {
  return { status, type: "text/plain", headers, text };
}

function html(status, title) {
  const text =
    `<!DOCTYPE html><html><head><title>${title}</title></head>` +
    `<body><h1>${title}</h1></body></html>\n`;
  return { status, type: "text/html", headers: [], text };
}

function freshId() {
  return crypto.randomUUID();
}

// What goes over the wire.
function bodyOf({ type, document, text }) {
  if (document === undefined) return Buffer.from(text);
  if (type === XML) return Buffer.from(xml(document));
  return Buffer.from(JSON.stringify(document, null, 2));
}

// The document without the members of those names, wherever they are (null),
// or with others in their place.
function altered(document, changes) {
  const result = {};
  for (const [name, value] of Object.entries(document)) {
    if (!Object.hasOwn(changes, name)) {
      const inner = typeof value === "object" && value !== null;
      result[name] = inner ? altered(value, changes) : value;
    } else {
      result[name] = changes[name];
    }
  }
  return result;
}

// An answer of STS's as who accepts JSON gets it: no name spaces, and a refusal
// without its root.
function asAccepted(answer, accept = "") {
  const { type, document } = answer;
  if (type !== XML || document === undefined) return answer;
  if (!accept.includes(JSON_TYPE)) return answer;
  const [[root, { xmlns, ...value }]] = Object.entries(document);
  const isRefusal = root === "ErrorResponse";
  return {
    ...answer,
    type: JSON_TYPE,
    document: isRefusal ? value : { [root]: value },
  };
}

// The JSON object in a text; an empty one if there is none.
function parse(text) {
  try {
    const value = JSON.parse(text.toString());
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

module.exports = {
  XML,
  altered,
  asAccepted,
  bodyOf,
  freshId,
  html,
  json,
  parse,
  plain,
};
