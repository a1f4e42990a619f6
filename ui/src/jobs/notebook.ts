// A notebook's cells as plain values (pure). Whatever a notebook holds, only text and pictures come out of it:
// HTML and scripts in its outputs are left where they are.

interface NotebookCell {
  kind: "code" | "text";
  source: string;
  count: number | null;
  outputs: NotebookOutput[];
}

export type NotebookOutput =
  | { kind: "text"; text: string }
  | { kind: "error"; text: string }
  | { kind: "picture"; source: string; text: string };

const PICTURES = ["image/png", "image/jpeg"];
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours of a terminal are control characters
const COLOURS = /\u001b\[[0-9;]*[A-Za-z]/g;

/** The cells of a notebook of format 4; undefined where it is none. */
export function notebookCells(notebook: unknown): NotebookCell[] | undefined {
  const cells = record(notebook)?.cells;
  if (!Array.isArray(cells)) return undefined;
  return cells.map((cell): NotebookCell => {
    const given = record(cell) ?? {};
    const isCode = given.cell_type === "code";
    const outputs = isCode && Array.isArray(given.outputs) ? given.outputs : [];
    return {
      kind: isCode ? "code" : "text",
      source: joined(given.source),
      count: typeof given.execution_count === "number" ? given.execution_count : null,
      outputs: outputs.flatMap(outputOf),
    };
  });
}

function outputOf(output: unknown): NotebookOutput[] {
  const given = record(output) ?? {};
  if (given.output_type === "stream") return [{ kind: "text", text: plain(joined(given.text)) }];
  if (given.output_type === "error") {
    const told = Array.isArray(given.traceback)
      ? given.traceback.map(String).join("\n")
      : `${given.ename}: ${given.evalue}`;
    return [{ kind: "error", text: plain(told) }];
  }
  const data = record(given.data) ?? {};
  const text = plain(joined(data["text/plain"]));
  for (const kind of PICTURES) {
    const picture = joined(data[kind]);
    if (picture && BASE64.test(picture))
      return [{ kind: "picture", source: `data:${kind};base64,${picture.replace(/\s/g, "")}`, text }];
  }
  return text ? [{ kind: "text", text }] : [];
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

/** Text in a notebook is a string, or its lines. */
function joined(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join("");
  return typeof value === "string" ? value : "";
}

function plain(text: string): string {
  return text.replace(COLOURS, "");
}
