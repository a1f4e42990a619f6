// Writes each script and style sheet compressed by Brotli beside it; the service sends it to who takes that.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { brotliCompressSync } from "node:zlib";

const assets = new URL("../dist/assets/", import.meta.url);
for (const name of readdirSync(assets).filter((one) => /\.(js|css)$/.test(one)))
  writeFileSync(new URL(`${name}.br`, assets), brotliCompressSync(readFileSync(new URL(name, assets))));
