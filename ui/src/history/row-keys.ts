// The key of a row that differs, as the service takes it (pure).
import type { ChangedRow, RowRestorationOrder } from "@/api/types";

export type RowKey = RowRestorationOrder["keys"][number];

/** A key as one text, for an address: the value itself, or a JSON array where it could be misread. */
export function keyText(values: Record<string, unknown>, keyNames: readonly string[]): string {
  const [first, ...others] = keyNames.map((name) => values[name] ?? null);
  const isPlain = others.length === 0 && first !== null && !/^(\[.*|\.{0,2})$/s.test(String(first));
  return isPlain ? String(first) : JSON.stringify([first, ...others]);
}

export function keyOfRow(row: ChangedRow, keyNames: readonly string[]): RowKey {
  const values = (row.fate === "delete" ? row.before : row.after) as RowKey;
  return Object.fromEntries(keyNames.map((name) => [name, values[name] ?? null]));
}
