// What STS demands of the parameters of its calls, and its words where they do
// not hold.
"use strict";

const ROLE = /^arn:aws[\w-]*:iam::(\d{12}):role\/(?:[!-~]*\/)?([\w+=,.@-]+)$/;

class Wrong extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function demand(holds, status, code, message) {
  if (!holds) throw new Wrong(status, code, message);
}

function member(name) {
  return name[0].toLowerCase() + name.slice(1);
}

function invalid(name, value, constraint) {
  const told = value === null ? "null" : `'${value}'`;
  return new Wrong(
    400,
    "ValidationError",
    `1 validation error detected: Value ${told} at '${member(name)}' failed` +
      ` to satisfy constraint: Member must ${constraint}`,
  );
}

function checkText(form, name, from, to, pattern, isSecret = false) {
  const value = form.get(name);
  if (value === null) throw invalid(name, null, "not be null");
  const told = isSecret ? "***" : value;
  if (value.length < from) {
    throw invalid(name, told, `have length greater than or equal to ${from}`);
  }
  if (value.length > to) {
    throw invalid(name, told, `have length less than or equal to ${to}`);
  }
  if (!pattern.test(value)) {
    const words = "satisfy regular expression pattern: ";
    throw invalid(name, told, words + pattern.source);
  }
  return value;
}

function checkDuration(form) {
  const text = form.get("DurationSeconds");
  if (text === null) return undefined;
  if (!/^\d+$/.test(text)) {
    throw new Wrong(400, "MalformedInput", "DurationSeconds is no number");
  }
  const seconds = Number(text);
  const name = "DurationSeconds";
  if (seconds < 900) {
    throw invalid(name, text, "have value greater than or equal to 900");
  }
  if (seconds > 43200) {
    throw invalid(name, text, "have value less than or equal to 43200");
  }
  return seconds;
}

function checkForm(form) {
  const role = checkText(form, "RoleArn", 20, 2048, /^[\s\S]*$/);
  const session = checkText(form, "RoleSessionName", 2, 64, /^[\w+=,.@-]*$/);
  const parts = ROLE.exec(role);
  demand(parts !== null, 400, "ValidationError", `${role} is invalid`);
  const policy = form.get("Policy");
  if (policy !== null) {
    demand(policy[0] === "{", 400, "MalformedPolicyDocument", "Syntax errors.");
  }
  const [, account, name] = parts;
  const arn = `arn:aws:sts::${account}:assumed-role/${name}/${session}`;
  return { role, session, arn, duration: checkDuration(form) };
}

module.exports = { Wrong, checkForm, checkText, demand };
