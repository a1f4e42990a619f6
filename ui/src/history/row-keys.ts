// The key of a row that differs, as the service takes it (pure).
import type { ChangedRow, RowRestorationOrder } from "@/api/types";

export type RowKey = RowRestorationOrder["keys"][number];

export function keyOfRow(row: ChangedRow, keyNames: readonly string[]): RowKey {
  const values = (row.fate === "delete" ? row.before : row.after) as RowKey;
  return Object.fromEntries(keyNames.map((name) => [name, values[name] ?? null]));
}
