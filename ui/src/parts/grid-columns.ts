// The tracks of a grid's columns: how wide each one is, and which stay in view at the left (pure).

export interface SizedColumn {
  id: string;
  /** A track of a CSS grid, for a column that cannot be resized. */
  width?: string;
  /** Pixels that the column has at least, until somebody gives it others. */
  pixels?: number;
  /** Whether it stays in view when the others are scrolled sideways. */
  isPinned?: boolean;
}

interface Tracks {
  template: string;
  /** Pixels that the row needs in all, and each column at least; undefined where the columns do not say. */
  minWidth: number | undefined;
  sizes: readonly number[] | undefined;
  /** Where the columns that stay lie, from the left. */
  pinned: ReadonlyMap<string, number>;
}

export const GAP = 12;
const PADDING = 20;
export const WIDTH_MIN = 56;
export const WIDTH_MAX = 900;
/** What stays leaves more than half of the grid to the rest. */
const PINNED_SHARE_MAX = 0.45;

export function tracks(
  columns: readonly SizedColumn[],
  widths: Readonly<Record<string, number>>,
  gridWidth: number,
): Tracks {
  const pinned = new Map<string, number>();
  const sizes = new Map<string, number>();
  let left = 0;
  for (const column of columns) {
    if (!column.isPinned || column.pixels === undefined) break;
    const room = gridWidth * PINNED_SHARE_MAX - left;
    const wanted = widths[column.id] ?? column.pixels;
    // The first one stays whatever the width: narrower, but as wide as it can be.
    const size = pinned.size === 0 && gridWidth > 0 ? Math.max(WIDTH_MIN, Math.min(wanted, room)) : wanted;
    if (pinned.size > 0 && size > room) break;
    pinned.set(column.id, left);
    sizes.set(column.id, Math.floor(size));
    left += size + GAP;
  }
  const template = columns.map((column) => {
    const fixed = sizes.get(column.id) ?? widths[column.id];
    if (fixed !== undefined) return `${fixed}px`;
    return column.pixels === undefined ? (column.width ?? "1fr") : `minmax(${column.pixels}px, 1fr)`;
  });
  const least = columns.map((column) => sizes.get(column.id) ?? widths[column.id] ?? column.pixels);
  const known = least.filter((one) => one !== undefined);
  const isKnown = known.length === least.length;
  return {
    template: template.join(" "),
    minWidth: isKnown ? known.reduce((sum, one) => sum + one + GAP, PADDING - GAP) : undefined,
    sizes: isKnown ? known : undefined,
    pinned,
  };
}

export function boundedWidth(pixels: number): number {
  return Math.round(Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, pixels)));
}
