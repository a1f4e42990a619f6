// What kind of content some bytes are: a picture, text in one of a few encodings, or neither (pure).

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
