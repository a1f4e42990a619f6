// A value of a row: a missing one is a faint dash, an empty text is told apart from it.

export function Cell({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="null-dash">–</span>;
  if (value === "") return <span className="null-dash">""</span>;
  const text = valueText(value);
  return <span title={text.length > 20 ? text : undefined}>{text}</span>;
}

export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function isNumeric(type: string | undefined): boolean {
  return type !== undefined && /^(byte|short|integer|long|float|double|decimal)/.test(type);
}
