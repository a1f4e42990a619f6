// A value of a row: a missing one is a faint dash, an empty text is told apart from it.

import { countText } from "./formats";

const SHOWN_MAX = 2000;

export function Cell({ value, type }: { value: unknown; type?: string | undefined }) {
  if (value === null || value === undefined) return <span className="null-dash">–</span>;
  if (value === "") return <span className="null-dash">""</span>;
  const text = type?.startsWith("timestamp") ? momentText(String(value)) : valueText(value);
  return <span title={text.length > 20 ? shortened(text) : undefined}>{shortened(text)}</span>;
}

export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A cell of some thousand letters ends with their number: what follows it must still be found. */
export function shortened(text: string): string {
  return text.length <= SHOWN_MAX
    ? text
    : `${text.slice(0, SHOWN_MAX)}… (${countText(text.length)} characters)`;
}

/** "2026-11-20 14:05:09.5 UTC" instead of "2026-11-20T14:05:09.500000+00:00". */
function momentText(value: string): string {
  return value
    .replace("T", " ")
    .replace(/(\.\d*?)0+(?=$|[Z+-])/, "$1")
    .replace(/\.(?=$|[Z+-])/, "")
    .replace(/(?:Z|\+00:00)$/, " UTC");
}

export function isNumeric(type: string | undefined): boolean {
  return type !== undefined && /^(byte|short|integer|long|float|double|decimal)/.test(type);
}
