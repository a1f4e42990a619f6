// What some bytes are, a picture or text in one of a few encodings, and what a text holds: JSON, rows (pure).

export type Encoding = "UTF-8" | "UTF-16" | "Latin-1";

export interface Decoded {
  text: string;
  encoding: Encoding;
}

const SAMPLE_BYTES = 4096;
/** Of the bytes of Western text in UTF-16 every second one is zero. */
const ZERO_SHARE_MIN = 0.4;
const PICTURES: Readonly<Record<string, string>> = {
  avif: "image/avif",
  bmp: "image/bmp",
  gif: "image/gif",
  ico: "image/x-icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  svg: "image/svg+xml",
  webp: "image/webp",
};

/** The media type of a picture, by the end of its name; undefined for anything else. */
export function pictureType(path: string): string | undefined {
  return PICTURES[path.split(".").at(-1)?.toLowerCase() ?? ""];
}

/** Text, or null where the bytes are none; a beginning may end within a letter and then loses its last line. */
export function decoded(bytes: Uint8Array, isWhole = true): Decoded | null {
  if (isDocument(bytes)) return null;
  const found = utf16(bytes) ?? utf8(bytes, isWhole) ?? latin1(bytes);
  if (found === null || isWhole) return found;
  const end = found.text.lastIndexOf("\n");
  return { ...found, text: end < 0 ? found.text : found.text.slice(0, end + 1) };
}

/** A PDF may consist of letters alone, and nobody reads it as such. */
function isDocument(bytes: Uint8Array): boolean {
  return "%PDF-".split("").every((letter, at) => bytes[at] === letter.charCodeAt(0));
}

function utf16(bytes: Uint8Array): Decoded | null {
  const order = utf16Order(bytes);
  return order && { text: new TextDecoder(order).decode(bytes), encoding: "UTF-16" };
}

function utf16Order(bytes: Uint8Array): "utf-16le" | "utf-16be" | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  const zeros = [0, 0];
  for (const [at, byte] of sample.entries()) if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros.map((count) => (2 * count) / Math.max(1, sample.length));
  if (odd >= ZERO_SHARE_MIN && even < ZERO_SHARE_MIN / 8) return "utf-16le";
  return even >= ZERO_SHARE_MIN && odd < ZERO_SHARE_MIN / 8 ? "utf-16be" : null;
}

function utf8(bytes: Uint8Array, isWhole: boolean): Decoded | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    return { text, encoding: "UTF-8" };
  } catch {
    return null;
  }
}

/** Any bytes would be Latin-1, so those are none that have control characters. */
function latin1(bytes: Uint8Array): Decoded | null {
  const isControl = (byte: number) => byte < 32 && ![9, 10, 12, 13].includes(byte);
  return bytes.subarray(0, SAMPLE_BYTES).some(isControl)
    ? null
    : { text: new TextDecoder("windows-1252").decode(bytes), encoding: "Latin-1" };
}

export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const position = /position (\d+)/.exec(message);
    const place = /line (\d+) column (\d+)/.exec(message);
    if (place) return `Invalid JSON: line ${place[1]}, column ${place[2]}.`;
    if (!position) return `Invalid JSON: ${message}.`;
    const before = text.slice(0, Number(position[1])).split("\n");
    return `Invalid JSON: line ${before.length}, column ${(before.at(-1) ?? "").length + 1}.`;
  }
}

export interface CsvTable {
  columns: string[];
  rows: string[][];
}

/** The first record names the columns; a record that is longer than it gets columns without a name. */
export function csvTable(text: string): CsvTable {
  const [head = [], ...rows] = csvRecords(text.replace(/^\uFEFF/, ""));
  const width = rows.reduce((most, row) => Math.max(most, row.length), head.length);
  return { columns: Array.from({ length: width }, (_, place) => head[place] ?? ""), rows };
}

function csvRecords(text: string): string[][] {
  const records: string[][] = [];
  let fields: string[] = [];
  let field = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] as string;
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else isQuoted = false;
    } else if (letter === '"') isQuoted = true;
    else if (letter === ",") {
      fields.push(field);
      field = "";
    } else if (letter === "\n") {
      records.push([...fields, field.replace(/\r$/, "")]);
      fields = [];
      field = "";
    } else field += letter;
  }
  if (field !== "" || fields.length > 0) records.push([...fields, field]);
  return records;
}
