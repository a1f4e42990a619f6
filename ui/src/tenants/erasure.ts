// What an erasure looks for in each stream, and which of the found streams may be ticked in advance.
import type { ErasureOrder } from "@/api/changes";
import { exactJson } from "@/api/client";
import { Problem } from "@/api/problem";
import type { RowErasure, StreamOverview } from "@/api/types";

export type Way = "key" | "where";

export interface Found {
  stream: string;
  order: ErasureOrder;
  /** What the dry run says, and once it is erased what became of it. */
  effect: RowErasure;
}

/** What is asked of a stream, or why it cannot be. */
export function orderOf(way: Way, text: string, { key }: Pick<StreamOverview, "key">): ErasureOrder | string {
  if (key.length === 0) return "it has no key";
  if (way === "where") return { keys: null, where: text };
  const values = valuesOf(text);
  if (values.length !== key.length)
    return `its key has ${key.length === 1 ? "1 column" : `${key.length} columns`}`;
  return { keys: [Object.fromEntries(key.map((name, at) => [name, values[at]]))], where: null };
}

function valuesOf(text: string): readonly unknown[] {
  if (!text.startsWith("[")) return [text];
  try {
    const values = exactJson(text) as unknown[];
    // A browser that cannot keep a number's digits would erase somebody else.
    if (!values.some((one) => Number.isInteger(one) && !Number.isSafeInteger(one))) return values;
  } catch {
    // It is refused as well.
  }
  throw new Problem(
    0,
    "NO_KEY",
    "The key begins with [ and is no JSON array of the columns' values.",
    "",
    'Put texts and long numbers in double quotes: ["A-1", 2]',
  );
}

/** Why a stream was not searched, by the code of its refusal; all else is a failure of the search. */
export const CANNOT_HAVE: Readonly<Record<string, string>> = {
  MISSING_COLUMN: "it has no such column",
  BAD_INPUT: "its key has another type",
  TYPE_MISMATCH: "its column has another type",
};

/** The stream whose erasure rewrites this one: of a delivery's state, where that is found too. */
export function ownerOf(found: readonly Found[], stream: string): Found | undefined {
  return found.find(({ effect }) => Object.hasOwn(effect.deliveries, stream));
}

/** Whether a key means one thing in all streams that have it: it does not where its columns are others. */
export function haveOneKey(found: readonly Found[]): boolean {
  return new Set(found.map(({ effect }) => JSON.stringify(effect.key))).size <= 1;
}

/** The streams that are ticked when they are found; in the place of a delivery's state the stream it is of. */
export function tickedAtFirst(way: Way, found: readonly Found[]): ReadonlySet<string> {
  const has = found.filter(({ effect }) => effect.rows_erased > 0);
  const isClear = way === "where" || haveOneKey(has);
  return new Set(isClear ? has.map(({ stream }) => ownerOf(found, stream)?.stream ?? stream) : []);
}
