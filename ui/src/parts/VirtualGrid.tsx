// A list of any length of which only the visible rows exist, moved through by keyboard.
//
// It is an ARIA grid: the grid itself has the focus and names the active row, so that scrolling never
// loses the place. Arrows, Home, End and the page keys move, Enter opens, Space selects. Columns may stay in
// view at the left, and may be made wider; rows that are not there yet are grey. Of columns that need more
// width than there is, those in view exist.
import { Checkbox, VisuallyHidden } from "@mantine/core";
import { useElementSize, useLocalStorage, useMediaQuery, useMergedRef } from "@mantine/hooks";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type ComponentProps,
  type KeyboardEvent,
  type MouseEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { boundedWidth, GAP, type SizedColumn, tracks, WIDTH_MAX, WIDTH_MIN } from "./grid-columns";
import { isFocusLost } from "./page";

export const NARROW = "(max-width: 900px)";
const TICK_WIDTH = 32;
const EXTRA_HEIGHT = 24;
const NO_WIDTHS: Readonly<Record<string, number>> = {};

export interface Column<Row> extends SizedColumn {
  header: ReactNode;
  /** A control beside the name, which takes its place among the keys' stops. */
  about?: (tabIndex: number) => ReactNode;
  align?: "right";
  isSortable?: boolean;
  /** Whether a row has it in a second line, where one has too little room. */
  isExtra?: boolean;
  /** Its share of that line, where that is not the width in pixels or 100. */
  share?: number;
  cell: (row: Row) => ReactNode;
}

export interface Sort {
  column: string;
  isDown: boolean;
}

export interface VirtualGridProps<Row> {
  label: string;
  /** Undefined: a row that is there and has not been fetched. */
  rows: readonly (Row | undefined)[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  rowHeight?: number;
  sort?: Sort;
  onSort?: (column: string) => void;
  selected?: ReadonlySet<string>;
  onSelect?: (keys: ReadonlySet<string>) => void;
  /** Whether rows that have not been fetched are selected as well. */
  isEvery?: boolean;
  /** So many may be selected at once, the last ones that were chosen; without it any number. */
  selectedMax?: number;
  onOpen?: (row: Row) => void;
  onNearEnd?: () => void;
  /** Told which rows are seen, the first and the last of them. */
  onVisible?: (first: number, last: number) => void;
  /** The row to go to; another object goes there again. */
  target?: { index: number } | undefined;
  /** Where columns may be made wider or narrower. */
  widths?: ColumnWidths;
  onKey?: (event: KeyboardEvent, row: Row | undefined) => void;
  rowClass?: (row: Row) => string;
  total?: number;
  /** False: there are at least `total`, and nobody has counted them. */
  isTotalExact?: boolean;
  /** Pixels below which a row has two lines, or is scrolled sideways where no column is an extra one. */
  minWidth?: number;
  /** What a row is called where it is told what a box selects. */
  nameOf?: (row: Row) => string;
  /** Whether the keys work at once, without a click. */
  hasFocus?: boolean;
}

export function VirtualGrid<Row>(props: VirtualGridProps<Row>) {
  const { rows, keyOf, selected, onOpen, onNearEnd, onVisible, target } = props;
  const { selectedMax } = props;
  const onSelect =
    props.onSelect && ((keys: ReadonlySet<string>) => props.onSelect?.(lastOf(keys, selectedMax)));
  const size = useElementSize<HTMLDivElement>();
  const isNarrowScreen = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const isNarrow = isNarrowScreen || (size.width > 0 && size.width < (props.minWidth ?? 0));
  const extras = isNarrow ? props.columns.filter((column) => column.isExtra) : [];
  const columns = isNarrow ? props.columns.filter((column) => !column.isExtra) : props.columns;
  const rowHeight = (props.rowHeight ?? 36) + (extras.length > 0 ? EXTRA_HEIGHT : 0);
  const scroller = useRef<HTMLDivElement>(null);
  const place = useMergedRef(scroller, size.ref);
  const id = useId();
  const [active, setActive] = useState(0);
  const [anchor, setAnchor] = useState(0);
  // Of all heads one has the keys' stop; arrows move it to its neighbours.
  const [headStop, setHeadStop] = useState("");
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  // What was measured at another width of the screen is no longer so.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the height of a row matters
  useLayoutEffect(() => virtual.measure(), [rowHeight]);
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const current = Math.min(active, rows.length - 1);

  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 20) onNearEnd?.();
  }, [last, rows.length, onNearEnd]);

  useEffect(() => onVisible?.(first, last), [first, last, onVisible]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each target
  useEffect(() => {
    if (!target || rows.length === 0) return;
    const index = Math.min(target.index, rows.length - 1);
    setActive(index);
    setAnchor(index);
    virtual.scrollToIndex(index, { align: "center" });
    scroller.current?.focus({ preventScroll: true });
  }, [target]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when it appears
  useEffect(() => {
    // A list that comes late takes nothing from a dialog that was opened meanwhile.
    const dialog = document.activeElement?.closest("[role=dialog]");
    if (dialog && !dialog.contains(scroller.current)) return;
    if (props.hasFocus || isFocusLost()) scroller.current?.focus({ preventScroll: true });
  }, []);
  // One stop of the Tab key for the grid, and those of the active row: not those of each row.
  useEffect(() => {
    for (const control of scroller.current?.querySelectorAll<HTMLElement>(".grid-body :is(button, a)") ?? [])
      control.tabIndex = control.closest("[data-active]") ? 0 : -1;
  });

  const shape = tracks(columns, props.widths?.chosen ?? NO_WIDTHS, size.width);
  const isWide = shape.minWidth !== undefined && shape.minWidth > size.width;
  const across = useVirtualizer({
    horizontal: true,
    count: isWide ? columns.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (shape.sizes?.[index] ?? 0) + GAP,
    overscan: 2,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the widths of the columns matter
  useLayoutEffect(() => across.measure(), [shape.template]);
  // Rows of two lines fit into a narrow screen.
  const wanted = extras.length > 0 ? undefined : props.minWidth;
  const minWidth = wanted ?? (shape.minWidth && shape.minWidth + (selected ? TICK_WIDTH + GAP : 0));
  const style = {
    gridTemplateColumns: selected ? `${TICK_WIDTH}px ${shape.template}` : shape.template,
    minWidth,
  };
  const extraStyle = { gridTemplateColumns: extras.map(extraWidth).join(" ") };
  const sortable =
    columns.find((one) => one.id === props.sort?.column) ?? columns.find((one) => one.isSortable);
  const stop = props.columns.some((one) => one.id === headStop) ? headStop : (sortable ?? columns[0])?.id;
  const inView = new Set(across.getVirtualItems().map((item) => item.index));
  const drawn = [...columns.entries()].filter(
    ([index, { id }]) => !isWide || inView.has(index) || shape.pinned.has(id) || id === stop,
  );
  const before = selected ? 1 : 0;
  const placed = (column: Column<Row>, index: number) => ({
    "data-align": column.align,
    "data-pinned": shape.pinned.has(column.id) || undefined,
    "aria-colindex": isWide ? index + before + 1 : undefined,
    style: { left: shape.pinned.get(column.id), gridColumn: isWide ? index + before + 1 : undefined },
  });
  const head = (column: Column<Row>, place?: ComponentProps<"div">) => (
    <GridHead
      key={column.id}
      column={column}
      sort={props.sort}
      onSort={props.onSort}
      widths={props.widths}
      place={place}
      hasStop={column.id === stop}
      onFocus={() => setHeadStop(column.id)}
    />
  );

  function move(index: number, keepsAnchor = false) {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setActive(next);
    if (!keepsAnchor) setAnchor(next);
    virtual.scrollToIndex(next);
    return next;
  }

  function selectRange(from: number, to: number) {
    const [low, high] = from < to ? [from, to] : [to, from];
    onSelect?.(new Set(there(rows.slice(low, high + 1)).map(keyOf)));
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
      onSelect(new Set(there(rows).map(keyOf)));
    } else {
      props.onKey?.(event, row);
    }
  }

  function onRowClick(event: MouseEvent, index: number) {
    const row = rows[index];
    if (!row) return;
    setActive(index);
    // A row's own buttons and links do what they say, and keep the focus.
    if (event.target instanceof Element && event.target.closest("button, a")) return;
    scroller.current?.focus({ preventScroll: true });
    if (onSelect && event.shiftKey) selectRange(anchor, index);
    else if (onSelect && (event.ctrlKey || event.metaKey)) toggle(index);
    else {
      setAnchor(index);
      onOpen?.(row);
    }
  }

  // Full only where all rows of the list are selected, not where those are that have been fetched.
  const isWhole = props.isTotalExact !== false && rows.length >= (props.total ?? 0);
  const areTicked =
    selected !== undefined && rows.length > 0 && there(rows).every((row) => selected.has(keyOf(row)));
  const isAll = areTicked && (isWhole || props.isEvery === true);
  return (
    <div
      ref={place}
      className="grid"
      role="grid"
      tabIndex={0}
      // What traps the focus in a panel gives it to this, where it comes later than the grid itself.
      data-autofocus={props.hasFocus || undefined}
      aria-label={props.label}
      aria-colcount={isWide ? columns.length + before : undefined}
      aria-rowcount={props.isTotalExact === false ? -1 : (props.total ?? rows.length) + 1}
      aria-multiselectable={onSelect ? true : undefined}
      aria-activedescendant={rows.length > 0 ? `${id}-${current}` : undefined}
      onKeyDown={onKeyDown}
    >
      {/* biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus and names the active row */}
      <div role="row" aria-rowindex={1} className="grid-row grid-head" style={style} onKeyDown={moveHead}>
        {selected && (
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div role="columnheader" className="grid-cell">
            {selectedMax === undefined ? (
              <Checkbox
                size="xs"
                tabIndex={-1}
                aria-label="Select all"
                checked={isAll}
                indeterminate={!isAll && selected.size > 0}
                onChange={() => onSelect?.(areTicked ? new Set() : new Set(there(rows).map(keyOf)))}
              />
            ) : (
              <VisuallyHidden>Selected</VisuallyHidden>
            )}
          </div>
        )}
        {drawn.map(([index, column]) => head(column, placed(column, index)))}
        {extras.length > 0 && (
          <div className="grid-extra" style={extraStyle}>
            {extras.map((column) => head(column))}
          </div>
        )}
      </div>
      <div role="rowgroup" className="grid-body" style={{ height: virtual.getTotalSize(), minWidth }}>
        {items.map((item) => {
          const row = rows[item.index];
          if (row === undefined)
            return (
              // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus and names the active row
              <div
                key={`unread ${item.index}`}
                id={`${id}-${item.index}`}
                role="row"
                aria-rowindex={item.index + 2}
                aria-busy
                data-active={item.index === current || undefined}
                className="grid-row grid-unread"
                style={{ ...style, height: rowHeight, transform: `translateY(${item.start}px)` }}
              >
                {/* biome-ignore lint/a11y/useFocusableInteractive: as above */}
                <div role="gridcell" className="grid-cell" />
              </div>
            );
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
              {drawn.map(([index, column]) => (
                // biome-ignore lint/a11y/useFocusableInteractive: as above
                <div key={column.id} role="gridcell" className="grid-cell" {...placed(column, index)}>
                  {column.cell(row)}
                </div>
              ))}
              {extras.length > 0 && (
                <div className="grid-extra" style={extraStyle}>
                  {extras.map((column) => (
                    // biome-ignore lint/a11y/useFocusableInteractive: as above
                    <div key={column.id} role="gridcell" className="grid-cell">
                      {column.cell(row)}
                    </div>
                  ))}
                </div>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function lastOf(keys: ReadonlySet<string>, most: number | undefined): ReadonlySet<string> {
  return most === undefined || keys.size <= most ? keys : new Set([...keys].slice(-most));
}

/** Those rows that have been fetched. */
function there<Row>(rows: readonly (Row | undefined)[]): Row[] {
  return rows.filter((row) => row !== undefined);
}

/** `172px` as a share of a line of any width; buttons are never cut off. */
function extraWidth<Row>({ id, width = "", share }: Column<Row>): string {
  return id === "actions" ? width : `minmax(0, ${share ?? (Number.parseInt(width, 10) || 100)}fr)`;
}

/** The arrow keys move between the heads of columns, all of which are one stop of the Tab key. */
function moveHead(event: KeyboardEvent<HTMLElement>) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined || !(event.target instanceof HTMLButtonElement)) return;
  const heads = [...event.currentTarget.querySelectorAll<HTMLElement>('[role="columnheader"]:has(button)')];
  const own = event.target.closest<HTMLElement>('[role="columnheader"]');
  event.preventDefault();
  heads[heads.indexOf(own as HTMLElement) + step]?.querySelector("button")?.focus();
}

const STEP = 16;

interface GridHeadProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((column: string) => void) | undefined;
  widths: ColumnWidths | undefined;
  place: ComponentProps<"div"> | undefined;
  /** Whether the Tab key comes here. */
  hasStop: boolean;
  onFocus: () => void;
}

/** The head of a column: its name, which sorts; what it holds; and its right edge, which makes it wider. */
function GridHead<Row>(props: GridHeadProps<Row>) {
  const { column, sort, onSort, widths } = props;
  const tabIndex = props.hasStop ? 0 : -1;
  const isSorted = sort?.column === column.id;
  const direction = isSorted ? (sort.isDown ? "descending" : "ascending") : undefined;
  const arrow = isSorted && (sort.isDown ? <IconArrowDown size={13} /> : <IconArrowUp size={13} />);
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: its button has the focus
    <div
      role="columnheader"
      className="grid-cell grid-head-cell"
      // In a second line all begin at the left, but buttons.
      data-align={props.place || column.id === "actions" ? column.align : undefined}
      {...props.place}
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

interface ColumnWidths {
  chosen: Readonly<Record<string, number>>;
  /** `undefined`: as wide as it was at first. */
  set: (column: string, pixels: number | undefined) => void;
}

const NONE: Record<string, number> = {};

/** The widths that somebody gave to the columns of a list; this browser keeps them. */
export function useColumnWidths(list: string): ColumnWidths {
  const [chosen, keep] = useLocalStorage<Record<string, number>>({
    key: `freezeframe.widths.${list}`,
    defaultValue: NONE,
    getInitialValueInEffect: false,
  });
  return useMemo(
    () => ({
      chosen,
      set: (column, pixels) =>
        keep(({ [column]: _, ...others }) =>
          pixels === undefined ? others : { ...others, [column]: boundedWidth(pixels) },
        ),
    }),
    [chosen, keep],
  );
}
