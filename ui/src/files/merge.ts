// Two texts that began as the same one, joined line by line (pure). Where only one side changed lines, its
// lines are taken; where both changed the same ones, mine stay and the place is counted.
import { Chunk } from "@codemirror/merge";
import { Text } from "@codemirror/state";

export interface Joined {
  text: string;
  /** How many of their changes were taken over, and how many meet one of mine. */
  taken: number;
  conflicts: number;
}

interface Change {
  from: number;
  to: number;
  lines: string[];
}

export function joined(base: string, theirs: string, mine: string): Joined {
  const lines = base.split("\n");
  const ours = changes(base, mine);
  const others = changes(base, theirs);
  const taken = others.filter((change) => !ours.some((one) => meets(one, change)));
  const same = others.filter((change) => ours.some((one) => isSame(one, change)));
  const all = [...ours, ...taken].sort((one, other) => one.from - other.from || one.to - other.to);
  const found: string[] = [];
  let at = 0;
  for (const change of all) {
    found.push(...lines.slice(at, change.from), ...change.lines);
    at = change.to;
  }
  found.push(...lines.slice(at));
  return {
    text: found.join("\n"),
    taken: taken.length,
    conflicts: others.length - taken.length - same.length,
  };
}

/** What became of the lines of `before`, from a line on and up to another. */
function changes(before: string, after: string): Change[] {
  const [old, fresh] = [Text.of(before.split("\n")), Text.of(after.split("\n"))];
  return Chunk.build(old, fresh).map((chunk) => ({
    from: lineAt(old, chunk.fromA),
    to: lineAt(old, chunk.toA),
    lines: linesOf(fresh).slice(lineAt(fresh, chunk.fromB), lineAt(fresh, chunk.toB)),
  }));
}

/** The number of the line that begins at a place; past the end it is the number of lines. */
function lineAt(text: Text, place: number): number {
  return place > text.length ? text.lines : text.lineAt(place).number - 1;
}

function linesOf(text: Text): string[] {
  return text.toString().split("\n");
}

/** Changes meet where they touch the same lines; one that only inserts also meets those beside it. */
function meets(one: Change, other: Change): boolean {
  if (one.from === one.to || other.from === other.to) return one.from <= other.to && other.from <= one.to;
  return one.from < other.to && other.from < one.to;
}

function isSame(one: Change, other: Change): boolean {
  return one.from === other.from && one.to === other.to && one.lines.join("\n") === other.lines.join("\n");
}
