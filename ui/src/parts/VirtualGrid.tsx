// A list of any length of which only the visible rows exist, moved through by keyboard.
//
// It is an ARIA grid: the grid itself has the focus and names the active row, so that scrolling never
// loses the place. Arrows, Home, End and the page keys move, Enter opens, Space selects.
import { Checkbox } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";

export const NARROW = "(max-width: 900px)";

export interface Column<Row> {
  id: string;
  header: ReactNode;
  /** A track of a CSS grid: `120px`, `minmax(0, 1fr)`. */
  width: string;
  align?: "right";
  isSortable?: boolean;
  /** Whether a narrow screen leaves it out. */
  isExtra?: boolean;
  cell: (row: Row) => ReactNode;
}

export interface Sort {
  column: string;
  isDown: boolean;
}

export interface VirtualGridProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  rowHeight?: number;
  sort?: Sort;
  onSort?: (column: string) => void;
  selected?: ReadonlySet<string>;
  onSelect?: (keys: ReadonlySet<string>) => void;
  onOpen?: (row: Row) => void;
  onNearEnd?: () => void;
  onKey?: (event: KeyboardEvent, row: Row | undefined) => void;
  rowClass?: (row: Row) => string;
  total?: number;
  /** False: there are at least `total`, and nobody has counted them. */
  isTotalExact?: boolean;
  minWidth?: number;
  /** What a row is called where it is told what a box selects. */
  nameOf?: (row: Row) => string;
  /** Whether the keys work at once, without a click. */
  hasFocus?: boolean;
}

export function VirtualGrid<Row>(props: VirtualGridProps<Row>) {
  const { rows, keyOf, rowHeight = 36, selected, onSelect, onOpen, onNearEnd } = props;
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const columns = isNarrow ? props.columns.filter((column) => !column.isExtra) : props.columns;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const [active, setActive] = useState(0);
  const [anchor, setAnchor] = useState(0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const current = Math.min(active, rows.length - 1);

  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 20) onNearEnd?.();
  }, [last, rows.length, onNearEnd]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it appears
  useEffect(() => {
    if (props.hasFocus) scroller.current?.focus({ preventScroll: true });
  }, []);

  const template = [selected ? "32px" : "", ...columns.map((column) => column.width)].join(" ");
  const style = { gridTemplateColumns: template, minWidth: props.minWidth };

  function move(index: number, keepsAnchor = false) {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setActive(next);
    if (!keepsAnchor) setAnchor(next);
    virtual.scrollToIndex(next);
    return next;
  }

  function selectRange(from: number, to: number) {
    const [low, high] = from < to ? [from, to] : [to, from];
    onSelect?.(new Set(rows.slice(low, high + 1).map(keyOf)));
  }

  function toggle(index: number) {
    const row = rows[index];
    if (!row || !onSelect || !selected) return;
    const next = new Set(selected);
    if (!next.delete(keyOf(row))) next.add(keyOf(row));
    setAnchor(index);
    onSelect(next);
  }

  function onKeyDown(event: KeyboardEvent<HTMLDivElement>) {
    if (event.target !== event.currentTarget) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 360) / rowHeight) - 1);
    const targets: Record<string, number> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: rows.length - 1,
    };
    const target = targets[event.key];
    const row = rows[current];
    if (target !== undefined) {
      event.preventDefault();
      const next = move(target, event.shiftKey);
      if (event.shiftKey && onSelect) selectRange(anchor, next);
    } else if (event.key === "Enter" && row) {
      event.preventDefault();
      onOpen?.(row);
    } else if (event.key === " " && onSelect) {
      event.preventDefault();
      toggle(current);
    } else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey) && onSelect) {
      event.preventDefault();
      onSelect(new Set(rows.map(keyOf)));
    } else {
      props.onKey?.(event, row);
    }
  }

  function onRowClick(event: MouseEvent, index: number) {
    const row = rows[index];
    if (!row) return;
    scroller.current?.focus({ preventScroll: true });
    setActive(index);
    if (onSelect && event.shiftKey) selectRange(anchor, index);
    else if (onSelect && (event.ctrlKey || event.metaKey)) toggle(index);
    else {
      setAnchor(index);
      onOpen?.(row);
    }
  }

  const isAll = selected !== undefined && rows.length > 0 && rows.every((row) => selected.has(keyOf(row)));
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      tabIndex={0}
      // What traps the focus in a panel gives it to this, where it comes later than the grid itself.
      data-autofocus={props.hasFocus || undefined}
      aria-label={props.label}
      aria-rowcount={props.isTotalExact === false ? -1 : (props.total ?? rows.length) + 1}
      aria-multiselectable={onSelect ? true : undefined}
      aria-activedescendant={rows.length > 0 ? `${id}-${current}` : undefined}
      onKeyDown={onKeyDown}
    >
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus and names the active row */}
      <div role="row" aria-rowindex={1} className="grid-row grid-head" style={style}>
        {selected && (
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div role="columnheader" className="grid-cell">
            <Checkbox
              size="xs"
              tabIndex={-1}
              aria-label="Select all"
              checked={isAll}
              indeterminate={!isAll && selected.size > 0}
              onChange={() => onSelect?.(isAll ? new Set() : new Set(rows.map(keyOf)))}
            />
          </div>
        )}
        {columns.map((column) => (
          <Head key={column.id} column={column} sort={props.sort} onSort={props.onSort} />
        ))}
      </div>
      <div
        role="rowgroup"
        className="grid-body"
        style={{ height: virtual.getTotalSize(), minWidth: props.minWidth }}
      >
        {items.map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const key = keyOf(row);
          const isSelected = selected?.has(key) ?? false;
          return (
            // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus and names the active row
            // biome-ignore lint/a11y/useKeyWithClickEvents: the grid's keys do the same
            <div
              key={key}
              id={`${id}-${item.index}`}
              role="row"
              aria-rowindex={item.index + 2}
              aria-selected={selected ? isSelected : undefined}
              data-active={item.index === current || undefined}
              className={`grid-row ${onOpen ? "grid-link" : ""} ${props.rowClass?.(row) ?? ""}`}
              style={{ ...style, height: rowHeight, transform: `translateY(${item.start}px)` }}
              onClick={(event) => onRowClick(event, item.index)}
            >
              {selected && (
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                // biome-ignore lint/a11y/useKeyWithClickEvents: Space does the same
                <div role="gridcell" className="grid-cell" onClick={(event) => event.stopPropagation()}>
                  <Checkbox
                    size="xs"
                    tabIndex={-1}
                    aria-label={`Select ${props.nameOf?.(row) ?? key}`}
                    checked={isSelected}
                    onChange={() => toggle(item.index)}
                  />
                </div>
              )}
              {columns.map((column) => (
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                <div key={column.id} role="gridcell" className="grid-cell" data-align={column.align}>
                  {column.cell(row)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Head<Row>({
  column,
  sort,
  onSort,
}: {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((column: string) => void) | undefined;
}) {
  const isSorted = sort?.column === column.id;
  const direction = isSorted ? (sort.isDown ? "descending" : "ascending") : undefined;
  const arrow = isSorted && (sort.isDown ? <IconArrowDown size={13} /> : <IconArrowUp size={13} />);
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: its button has the focus
    <div role="columnheader" className="grid-cell" data-align={column.align} aria-sort={direction}>
      {column.isSortable && onSort ? (
        <button type="button" className="grid-sort" onClick={() => onSort(column.id)}>
          {column.header}
          {arrow}
        </button>
      ) : (
        column.header
      )}
    </div>
  );
}
