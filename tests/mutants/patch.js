// Applies one change of list/*.txt to the text of a source file.  Throws a
// StaleError unless exactly one place matches.
//
//   const changed = applyChange(text, { file, name, before, after });
//
// Lines are compared token by token; layout and comments do not matter.  They
// are looked for in the top-level function or class `name`, then in the whole
// file.  If neither has them, names may have changed: each quoted name that the
// definition no longer has may stand for one other name, the same everywhere,
// and the new lines are written with it.  A name that stands only in new lines
// cannot follow: quote one more old line that has it.
"use strict";

class StaleError extends Error {}

const tokenPattern = new RegExp([/\/\/.*/, /"(?:[^"\\\n]|\\.)*"/,
  /'(?:[^'\\\n]|\\.)+'/, /\d[\w'.]*/, /std(?:::\w+)+/, /\w+/, /\S/]
  .map((kind) => kind.source).join("|"), "g");

const keywords = new Set(("auto bool break case catch char class const " +
  "constexpr continue default delete do double else enum explicit false final " +
  "float for friend if inline int long mutable namespace new noexcept nullptr " +
  "operator override private protected public return short signed sizeof " +
  "static static_assert static_cast struct switch template this throw true try " +
  "typename union unsigned using virtual void volatile while").split(" "));

// The tokens of the code, each with its offset; without comments.
function tokensOf(code) {
  return [...code.matchAll(tokenPattern)]
    .map(({ 0: text, index }) => ({ text, index }))
    .filter(({ text }) => !text.startsWith("//"));
}

function isName(token) {
  return /^[A-Za-z_]\w*$/.test(token) && !keywords.has(token);
}

// The name of a top-level definition: a class, a constant, or a function with
// its class.
function nameOf(definition) {
  const [, type] = /^(?:class|struct|enum class) (\w+)/.exec(definition) ?? [];
  const [, value] = /^[^(]*?(\w+)(?:\[\w*\])? =/.exec(definition) ?? [];
  const [, called] = /([\w:~]+)\(/.exec(definition) ?? [];
  return type ?? value ?? called;
}

// All top-level definitions: {name, begin, end}.  One starts in the first
// column, and has all lines after it that are empty, indented, a label, or
// start with a closing sign or "#".
function definitionsOf(text) {
  const all = text.matchAll(
    /^(?!namespace|inline namespace)\w.*\n(?:(?:[ )}#].*|\w+:)?\n)*/gm);
  return [...all].map(({ 0: definition, index }) => ({
    name: nameOf(definition), begin: index, end: index + definition.length }));
}

// Compares the pattern with the tokens from `at` on.  Returns which found name
// stands for each name that `isFree`; null if they do not match.
function bind(pattern, tokens, at, isFree) {
  const bound = new Map();
  for (const [i, { text: wanted }] of pattern.entries()) {
    const found = tokens[at + i]?.text;
    if (found !== wanted && !(isFree(wanted) && isName(found ?? ""))) {
      return null;
    }
    if (isFree(wanted) && (bound.get(wanted) ?? found) !== found) return null;
    if (isFree(wanted)) bound.set(wanted, found);
  }
  // Two names must not become one.
  const oneToOne = new Set(bound.values()).size === bound.size;
  return oneToOne ? bound : null;
}

// Every place that matches: {begin, end, bound}.
function placesOf(pattern, tokens, isFree) {
  return tokens.flatMap(({ index }, at) => {
    const bound = bind(pattern, tokens, at, isFree);
    const last = tokens[at + pattern.length - 1];
    return bound ? [{ begin: index, end: last.index + last.text.length, bound }]
      : [];
  });
}

// The places that have the lines, as they are quoted or with other names.
function findPlaces(text, name, lines) {
  const pattern = tokensOf(lines);
  const tokens = tokensOf(text);
  const definitions = definitionsOf(text)
    .filter((definition) => definition.name === name);
  const inside = definitions.length === 0 ? tokens : tokens.filter(
    ({ index }) => definitions.some(({ begin, end }) =>
      begin <= index && index < end));
  const known = new Set(inside.map((token) => token.text));
  const mayBeRenamed = (token) => isName(token) && !known.has(token);
  const asQuoted = () => false;
  let places = placesOf(pattern, inside, asQuoted);
  if (places.length === 0) places = placesOf(pattern, tokens, asQuoted);
  if (places.length === 0) places = placesOf(pattern, inside, mayBeRenamed);
  return places;
}

function renamed(code, bound) {
  return code.replace(tokenPattern, (token) => bound.get(token) ?? token);
}

// Throws StaleError if the lines are nowhere, or in several places.
function applyChange(text, { file, name, before, after }) {
  const found = findPlaces(text, name, before.join("\n"));
  if (found.length !== 1) {
    throw new StaleError(`${file} has this ${found.length} times:` +
      `\n${before.join("\n")}`);
  }
  const [{ begin, end, bound }] = found;
  return text.slice(0, begin) + renamed(after.join("\n"), bound) +
    text.slice(end);
}

module.exports = { StaleError, applyChange, definitionsOf, findPlaces };
