// How values are shown: cells, cells that changed, counts of rows, ids, moments.
import { Tooltip, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Fragment, useSyncExternalStore } from "react";
import type { ChangedRow } from "@/api/types";
import { agoText, countText, dateText, exactText } from "./formats";

const SHOWN_MAX = 2000;

export function Cell({ value, type }: { value: unknown; type?: string | undefined }) {
  if (value === null || value === undefined) return <span className="null-dash">–</span>;
  if (value === "") return <span className="null-dash">""</span>;
  const text = type?.startsWith("timestamp") ? momentText(String(value)) : valueText(value);
  return <span title={text.length > 20 ? shortened(text) : undefined}>{shortened(text)}</span>;
}

export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A cell of some thousand letters ends with their number: what follows it must still be found. */
function shortened(text: string): string {
  return text.length <= SHOWN_MAX
    ? text
    : `${text.slice(0, SHOWN_MAX)}… (${countText(text.length)} characters)`;
}

/** "2026-11-20 14:05:09.5 UTC" instead of "2026-11-20T14:05:09.500000+00:00". */
function momentText(value: string): string {
  return value
    .replace("T", " ")
    .replace(/(\.\d*?)0+(?=$|[Z+-])/, "$1")
    .replace(/\.(?=$|[Z+-])/, "")
    .replace(/(?:Z|\+00:00)$/, " UTC");
}

export function isNumeric(type: string | undefined): boolean {
  return type !== undefined && /^(byte|short|integer|long|float|double|decimal)/.test(type);
}

export const ROW_CLASSES = { insert: "row-new", update: "", delete: "row-gone" } as const;
export const FATES = { insert: "new", update: "changed", delete: "deleted" } as const;

/** A cell of a row that differs; one that changed has its old value above the new one. */
export function DiffCell({ row, name }: { row: ChangedRow; name: string }) {
  if (!isChanged(row, name)) return <Cell value={(row.fate === "delete" ? row.before : row.after)[name]} />;
  const [old, fresh] = textsOf(row, name);
  return (
    <span className="cell-changed" title={`${old} → ${fresh}`}>
      <del>{old}</del>
      <ins>{fresh}</ins>
    </span>
  );
}

const isChanged = (row: ChangedRow, name: string) => row.fate === "update" && row.changed.includes(name);
const textsOf = (row: ChangedRow, name: string) =>
  [row.before[name], row.after[name]].map((value) => shortened(valueText(value)));

/** Pixels that the values of a column need, old and new, between those of some letters and of a sentence. */
export function widthOf(rows: readonly ChangedRow[], name: string): number {
  const letters = rows.flatMap((row) => textsOf(row, name)).map((text) => text.length);
  return Math.min(WIDEST, Math.max(NARROWEST, 20 + LETTER * letters.reduce((a, b) => Math.max(a, b), 0)));
}

const LETTER = 8.5;
const NARROWEST = 96;
const WIDEST = 420;

/** Whether a column of a difference has numbers alone, which stand at its right edge. */
export function hasNumbers(rows: readonly ChangedRow[], name: string): boolean {
  const values = rows
    .flatMap(({ before, after }) => [before[name], after[name]])
    .filter((one) => one != null);
  return values.length > 0 && values.every((one) => typeof one === "number");
}

interface RowCounts {
  inserted: number;
  updated: number;
  deleted: number;
}

const SIGNS = [
  ["inserted", "+", "mark-new", "new"],
  ["updated", "~", "mark-changed", "updated"],
  ["deleted", "-", "mark-gone", "deleted"],
] as const;

/** `+12 -3`: what no row is counted for is left out. */
export function Changes({ counts }: { counts: RowCounts }) {
  const shown = SIGNS.filter(([name]) => counts[name] > 0);
  if (shown.length === 0) return <span className="dim">no rows</span>;
  return (
    <span className="number">
      {shown.map(([name, sign, mark, word], at) => (
        <Fragment key={name}>
          {at > 0 && " "}
          <span aria-hidden className={mark}>
            {sign}
            {countText(counts[name])}
          </span>
          <VisuallyHidden>{`${at > 0 ? ", " : ""}${counts[name]} ${word}`}</VisuallyHidden>
        </Fragment>
      ))}
    </span>
  );
}

export function CopyText({ text, shown, label }: { text: string; shown?: string; label?: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  return (
    <Tooltip label={clipboard.copied ? "Copied" : `Copy ${label ?? text}`}>
      <UnstyledButton
        className="copy-text"
        aria-label={`Copy ${label ?? ""} ${text}`}
        onClick={(event) => {
          event.stopPropagation();
          clipboard.copy(text);
        }}
      >
        {shown ?? text}
      </UnstyledButton>
    </Tooltip>
  );
}

/** The width of a grid's column of moments with dates; a narrow grid leaves out how long ago they are. */
export const DATED = "clamp(108px, 40cqi - 200px, 196px)";

interface MomentProps {
  at: string;
  className?: string;
  /** Whether the date and the time of day stand before it, and in place of it where it is narrow. */
  isDated?: boolean;
}

export function Moment({ at, className, isDated = false }: MomentProps) {
  const now = useNow();
  const exact = `${exactText(at)} · ${exactText(at, "UTC")}`;
  return (
    <Tooltip label={exact}>
      <time dateTime={at} className={className}>
        {isDated && <span className="moment-date">{dateText(at, new Date(now))}</span>}
        <span className={isDated ? "moment-ago" : undefined}>
          {isDated && " · "}
          {agoText(at, now)}
        </span>
      </time>
    </Tooltip>
  );
}

const TICK_MS = 20_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      for (const one of listeners) one();
    }, TICK_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
