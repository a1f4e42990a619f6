// The head of a column: its name, which sorts; what it holds; and its right edge, which makes it wider.
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import { WIDTH_MAX, WIDTH_MIN } from "./grid-columns";
import type { ColumnWidths } from "./useColumnWidths";
import type { Column, Sort } from "./VirtualGrid";

const STEP = 16;

interface GridHeadProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((column: string) => void) | undefined;
  widths: ColumnWidths | undefined;
  /** From the left, where the column stays in view. */
  pinnedAt: number | undefined;
  /** Whether the Tab key comes here. */
  hasStop: boolean;
  onFocus: () => void;
}

export function GridHead<Row>(props: GridHeadProps<Row>) {
  const { column, sort, onSort, widths, pinnedAt } = props;
  const tabIndex = props.hasStop ? 0 : -1;
  const isSorted = sort?.column === column.id;
  const direction = isSorted ? (sort.isDown ? "descending" : "ascending") : undefined;
  const arrow = isSorted && (sort.isDown ? <IconArrowDown size={13} /> : <IconArrowUp size={13} />);
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: its button has the focus
    <div
      role="columnheader"
      className="grid-cell grid-head-cell"
      data-align={column.align}
      data-pinned={pinnedAt === undefined ? undefined : true}
      style={pinnedAt === undefined ? undefined : { left: pinnedAt }}
      aria-label={column.about ? column.id : undefined}
      aria-sort={direction}
      onFocus={props.onFocus}
    >
      {column.isSortable && onSort ? (
        <button type="button" tabIndex={tabIndex} className="grid-sort" onClick={() => onSort(column.id)}>
          <span>{column.header}</span>
          {arrow}
        </button>
      ) : (
        <span className="grid-title">{column.header}</span>
      )}
      {column.about?.(tabIndex)}
      {widths && column.pixels !== undefined && (
        <Edge
          name={column.id}
          width={widths.chosen[column.id] ?? column.pixels}
          tabIndex={tabIndex}
          onWidth={(pixels) => widths.set(column.id, pixels)}
        />
      )}
    </div>
  );
}

interface EdgeProps {
  name: string;
  width: number;
  tabIndex: number;
  onWidth: (pixels: number | undefined) => void;
}

/** Dragged, or moved by the arrow keys; a double click gives the first width back. */
function Edge({ name, width, tabIndex, onWidth }: EdgeProps) {
  const begun = useRef<{ at: number; width: number } | null>(null);
  const now = (element: HTMLElement) => element.parentElement?.getBoundingClientRect().width ?? 0;

  function onMove(event: PointerEvent<HTMLElement>) {
    if (begun.current) onWidth(begun.current.width + event.clientX - begun.current.at);
  }
  function onKey(event: KeyboardEvent<HTMLElement>) {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (step === undefined && event.key !== "Home") return;
    event.preventDefault();
    onWidth(step === undefined ? undefined : now(event.currentTarget) + step);
  }
  return (
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${name}`}
      aria-valuenow={width}
      aria-valuemin={WIDTH_MIN}
      aria-valuemax={WIDTH_MAX}
      tabIndex={tabIndex}
      className="grid-edge"
      title="Drag to change the width; double-click to reset it"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        begun.current = { at: event.clientX, width: now(event.currentTarget) };
      }}
      onPointerMove={onMove}
      onPointerUp={() => {
        begun.current = null;
      }}
      onPointerCancel={() => {
        begun.current = null;
      }}
      onDoubleClick={() => onWidth(undefined)}
      onKeyDown={onKey}
    />
  );
}
