// The JavaScript that the first page loads, gzipped, against its limit (225 kB).
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 225 * 1000;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
const seen = new Set();

function visit(name) {
  if (seen.has(name)) return;
  seen.add(name);
  for (const next of manifest[name].imports ?? []) visit(next);
}

for (const [name, chunk] of Object.entries(manifest)) if (chunk.isEntry) visit(name);
let total = 0;
for (const name of seen) {
  const bytes = gzipSync(readFileSync(new URL(manifest[name].file, dist))).length;
  total += bytes;
  console.log(`${String(bytes).padStart(8)}  ${manifest[name].file}`);
}
console.log(`${String(total).padStart(8)}  JavaScript on first load, gzipped (limit ${LIMIT_BYTES})`);
if (seen.size === 0 || total > LIMIT_BYTES) {
  console.error("The first page loads more JavaScript than it may: load what it does not need lazily.");
  process.exit(1);
}
