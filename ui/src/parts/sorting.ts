// Sorting as text of an address ("size", "-size"), and by it.
import type { Sort } from "./VirtualGrid";

const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

export function sortFrom(text: string | undefined, otherwise: string): Sort {
  const known = text || otherwise;
  return known.startsWith("-") ? { column: known.slice(1), isDown: true } : { column: known, isDown: false };
}

export function sortText(sort: Sort): string {
  return (sort.isDown ? "-" : "") + sort.column;
}

/** The sort after a click on a column's head: up, then down. */
export function sortedBy(sort: Sort, column: string): Sort {
  return { column, isDown: sort.column === column ? !sort.isDown : false };
}

type Value = string | number | null | undefined;

/** The rows in order of a value; missing values come last either way. */
export function sorted<Row>(rows: readonly Row[], value: (row: Row) => Value, isDown: boolean): Row[] {
  return [...rows].sort((one, other) => {
    const [left, right] = [value(one), value(other)];
    const isLeftMissing = left === null || left === undefined;
    const isRightMissing = right === null || right === undefined;
    if (isLeftMissing || isRightMissing) return Number(isLeftMissing) - Number(isRightMissing);
    const order =
      typeof left === "number" && typeof right === "number"
        ? left - right
        : byName.compare(String(left), String(right));
    return isDown ? -order : order;
  });
}
