// Every package that the pages are built from must have a licence that fits Apache-2.0.
import { readFileSync } from "node:fs";

const FITTING = new Set([
  "MIT",
  "ISC",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "CC0-1.0",
  "Unlicense",
  "BlueOak-1.0.0",
  "Zlib",
]);
// These name no licence in their package.json, but in their Readme; the exact version was looked at.
const READ_BY_HAND = new Map([["combine-errors@3.0.3", "MIT"]]);
const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8"));

/** Whether an SPDX expression can be met by fitting licences only. */
function fits(expression) {
  const bare = expression.replace(/[()]/g, " ").trim();
  return bare
    .split(/\s+OR\s+/)
    .some((choice) => choice.split(/\s+AND\s+/).every((one) => FITTING.has(one.trim())));
}

function licenceOf(place, entry) {
  const name = place.split("node_modules/").at(-1);
  return entry.license ?? READ_BY_HAND.get(`${name}@${entry.version}`) ?? "";
}

const shipped = Object.entries(lock.packages).filter(([place, entry]) => place !== "" && !entry.dev);
const odd = shipped.filter(([place, entry]) => !fits(licenceOf(place, entry)));
for (const [place, entry] of odd)
  console.error(`${place} ${entry.version}: ${licenceOf(place, entry) || "no licence named"}`);
const hosts = Object.entries(lock.packages).filter(
  ([, entry]) => entry.resolved && !entry.resolved.startsWith("https://registry.npmjs.org/"),
);
for (const [place, entry] of hosts) console.error(`${place}: fetched from ${new URL(entry.resolved).host}`);
if (shipped.length === 0 || odd.length > 0 || hosts.length > 0) process.exit(1);
console.log(`${shipped.length} packages in the pages, all under licences that fit Apache-2.0.`);
