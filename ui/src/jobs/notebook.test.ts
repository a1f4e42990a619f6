import { expect, test } from "vitest";
import { notebookCells } from "./notebook";

const code = (outputs: unknown[]) => ({
  cell_type: "code",
  source: ["a = 1\n", "a"],
  execution_count: 2,
  outputs,
});

test("cells are told with their source and what they showed", () => {
  const text = { output_type: "execute_result", data: { "text/plain": ["1"] } };
  const stream = { output_type: "stream", text: "\u001b[31mred\u001b[0m\n" };
  expect(
    notebookCells({ cells: [{ cell_type: "markdown", source: "# Title" }, code([text, stream])] }),
  ).toEqual([
    { kind: "text", source: "# Title", count: null, outputs: [] },
    {
      kind: "code",
      source: "a = 1\na",
      count: 2,
      outputs: [
        { kind: "text", text: "1" },
        { kind: "text", text: "red\n" },
      ],
    },
  ]);
});

test("HTML is left out, and so is a picture that is none", () => {
  const html = { output_type: "display_data", data: { "text/html": "<script>bad()</script>" } };
  const odd = { output_type: "display_data", data: { "image/png": "javascript:bad()" } };
  const drawn = { output_type: "display_data", data: { "image/svg+xml": "<svg onload=bad()>" } };
  expect(notebookCells({ cells: [code([html, odd, drawn])] })?.[0]?.outputs).toEqual([]);
});

test("an error is told with its trace", () => {
  const error = {
    output_type: "error",
    ename: "KeyError",
    evalue: "'Id'",
    traceback: ["Traceback", "KeyError"],
  };
  expect(notebookCells({ cells: [code([error])] })?.[0]?.outputs).toEqual([
    { kind: "error", text: "Traceback\nKeyError" },
  ]);
});

test("what is not a notebook has no cells", () => {
  expect([null, [], {}, { cells: 1 }].map(notebookCells)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
