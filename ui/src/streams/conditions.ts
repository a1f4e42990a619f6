// Conditions on rows: which comparisons a column's type has, and how they are written in the address (pure).

export type Comparison = "=" | "!=" | "<" | "<=" | ">" | ">=" | "is null" | "is not null";

interface Choice {
  value: Comparison;
  label: string;
}

const MISSING: Choice[] = [
  { value: "is null", label: "is missing" },
  { value: "is not null", label: "has a value" },
];
const TEXTS: Choice[] = [
  { value: "=", label: "is" },
  { value: "!=", label: "is not" },
  { value: ">=", label: "from" },
  { value: "<=", label: "up to" },
];
const NUMBERS: Choice[] = [
  { value: "=", label: "=" },
  { value: "!=", label: "≠" },
  { value: "<", label: "<" },
  { value: "<=", label: "≤" },
  { value: ">", label: ">" },
  { value: ">=", label: "≥" },
];
const TIMES: Choice[] = [
  { value: "=", label: "is" },
  { value: "<", label: "before" },
  { value: ">=", label: "from" },
  { value: ">", label: "after" },
];
const TRUTHS: Choice[] = [{ value: "=", label: "is" }];

type Kind = "text" | "number" | "time" | "date" | "truth" | "other";

export function kindOf(type: string | undefined): Kind {
  if (type === undefined) return "text";
  if (/^(byte|short|integer|long|float|double|decimal)/.test(type)) return "number";
  if (type.startsWith("timestamp")) return "time";
  if (type === "date") return "date";
  if (type === "boolean") return "truth";
  return type === "string" ? "text" : "other";
}

/** What a column of that type can be compared by. */
export function comparisonsOf(type: string | undefined): Choice[] {
  const own = { text: TEXTS, number: NUMBERS, time: TIMES, date: TIMES, truth: TRUTHS, other: [] };
  return [...own[kindOf(type)], ...MISSING];
}

/** What one may type, as an example. */
export function exampleOf(type: string | undefined): string {
  const examples = { number: "1000", time: "2026-11-20T14:05:00Z", date: "2026-11-20" } as Record<
    string,
    string
  >;
  return examples[kindOf(type)] ?? "Value";
}

/** The condition in SQL, as the service takes it. Quoted text is a value of any type. */
export function conditionText(column: string, comparison: Comparison, value: string, type?: string): string {
  const name = `\`${column.replaceAll("`", "``")}\``;
  if (comparison.startsWith("is")) return `${name} ${comparison}`;
  const isNumber = kindOf(type) === "number" && /^-?\d+(\.\d+)?$/.test(value);
  const quoted = value.replaceAll("\\", "\\\\").replaceAll("'", "''");
  return `${name} ${comparison} ${isNumber ? value : `'${quoted}'`}`;
}

/** The condition as a person reads it. */
export function conditionLabel(condition: string): string {
  return condition.replaceAll("`", "");
}
