// A cell of a row that differs: its value, or the old one and the new one where it changed.
import type { ChangedRow } from "@/api/types";
import { Cell, shortened, valueText } from "./Cell";

export const FATES = { insert: "new", update: "changed", delete: "deleted" } as const;

export function DiffCell({ row, name }: { row: ChangedRow; name: string }) {
  if (row.fate === "delete") return <Cell value={row.before[name]} />;
  if (!row.changed.includes(name)) return <Cell value={row.after[name]} />;
  const [old, fresh] = [row.before[name], row.after[name]].map((value) => shortened(valueText(value))) as [
    string,
    string,
  ];
  return (
    <span className="cell-changed" title={`${old} → ${fresh}`}>
      <del>{old}</del>
      <ins>{fresh}</ins>
    </span>
  );
}
