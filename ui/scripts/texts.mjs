// texts.mjs: prints every text of the console with its file and line, to be read in one place.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";

const ROOT = new URL("../src/", import.meta.url).pathname;
const ATTRIBUTES = new Set([
  ..."label title placeholder description aria-label header none empty verb note question confirm".split(" "),
]);
const SILENT = new Set([
  "className",
  "to",
  "queryKey",
  "key",
  "type",
  "variant",
  "size",
  "role",
  "id",
  "value",
]);

const files = readdirSync(ROOT, { recursive: true }).filter(
  (name) => /\.tsx?$/.test(name) && !name.includes(".test.") && !name.includes("schema.d"),
);
for (const name of files.sort()) {
  const path = join(ROOT, name);
  const source = ts.createSourceFile(
    path,
    readFileSync(path, "utf8"),
    ts.ScriptTarget.Latest,
    true,
    ts.ScriptKind.TSX,
  );
  const found = [];
  visit(source, (node, text) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    found.push(`${String(line + 1).padStart(5)}  ${text.replace(/\s+/g, " ").trim()}`);
  });
  if (found.length > 0) console.log(`${relative(ROOT, path)}\n${found.join("\n")}\n`);
}

function visit(node, add) {
  if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
  if (ts.isJsxText(node) && /\p{L}/u.test(node.text)) add(node, node.text);
  else if (ts.isJsxAttribute(node) && node.initializer && ts.isStringLiteral(node.initializer)) {
    if (ATTRIBUTES.has(node.name.getText())) add(node, node.initializer.text);
  } else if (ts.isTemplateExpression(node) && /\p{L}{2,} /u.test(node.getText())) add(node, node.getText());
  else if (ts.isStringLiteral(node) && isSentence(node.text) && !isSilent(node)) add(node, node.text);
  if (!ts.isTemplateExpression(node)) ts.forEachChild(node, (child) => visit(child, add));
}

/** Words between spaces, or one word with a capital: what people read, not a class or a key. */
function isSentence(text) {
  return /\p{L}+ \p{L}/u.test(text) || /^\p{Lu}\p{Ll}+$/u.test(text);
}

function isSilent(node) {
  const parent = node.parent;
  return ts.isJsxAttribute(parent) || (ts.isPropertyAssignment(parent) && SILENT.has(parent.name.getText()));
}
