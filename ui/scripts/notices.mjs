// Writes the licences of the packages that the pages are built from beside the pages: they go with the wheel.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const ui = new URL("../", import.meta.url);
const lock = JSON.parse(readFileSync(new URL("package-lock.json", ui), "utf8"));
const NOTICE = /^(licen[cs]e|notice|copying)/i;

/** The texts that a package brings, or the name of its licence where it brings none. */
function texts(place, entry) {
  const folder = new URL(`${place}/`, ui);
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => NOTICE.test(name)) : [];
  return files.length > 0
    ? files.sort().map((name) => readFileSync(new URL(name, folder), "utf8").trim())
    : [`Licence: ${entry.license ?? "see the package"}`];
}

const shipped = Object.entries(lock.packages).filter(([place, entry]) => place !== "" && !entry.dev);
const parts = shipped.map(([place, entry]) =>
  [`${place.split("node_modules/").at(-1)} ${entry.version}`, ...texts(place, entry)].join("\n\n"),
);
writeFileSync(new URL("dist/third-party-licences.txt", ui), `${parts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`);
