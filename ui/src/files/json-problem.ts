// What is wrong with a text that is to be JSON, in a sentence with its line; null where nothing is.

export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const position = /position (\d+)/.exec(message);
    const place = /line (\d+) column (\d+)/.exec(message);
    if (place) return `Invalid JSON: line ${place[1]}, column ${place[2]}.`;
    if (!position) return `Invalid JSON: ${message}.`;
    const before = text.slice(0, Number(position[1])).split("\n");
    return `Invalid JSON: line ${before.length}, column ${(before.at(-1) ?? "").length + 1}.`;
  }
}
