// The rows of a stream that differ between two versions: new, deleted, and changed with each cell's old and new value.
import { Button, Switch, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { rowDifferenceQuery, useList } from "@/api/queries";
import type { RowDifference } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { counted, countText } from "@/parts/formats";
import { EmptyNote, Placeholder } from "@/parts/states";
import { Changes } from "@/parts/values";
import { ChangedRows } from "./ChangedRows";
import { keyOfRow, type RowKey } from "./versions";

const NONE: ReadonlySet<string> = new Set();

interface RowDifferenceGridProps {
  stream: string;
  before: number;
  after: number;
  /** What is done with ticked rows. */
  verb?: string;
  /** Restores the ticked rows (none: all that differ); without it no row can be ticked. */
  onRestoreRows?: (keys: RowKey[]) => void;
}

export function RowDifferenceGrid(props: RowDifferenceGridProps) {
  const { stream, before, after, verb = "Restore", onRestoreRows } = props;
  const { place } = usePanel();
  const [isAll, setAll] = useState(false);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(NONE);
  // All rows that differ, also those that are not fetched: the service finds them.
  const [isEvery, setEvery] = useState(false);
  const wanted = rowDifferenceQuery(place, stream, before, after);
  const { query, entries: rows, more } = useList(wanted, (page) => page.rows);
  const first = query.data?.pages[0];
  // biome-ignore lint/correctness/useExhaustiveDependencies: other versions have other rows
  useEffect(() => select(NONE), [stream, before, after]);
  function select(keys: ReadonlySet<string>) {
    setTicked(keys);
    setEvery(false);
  }
  if (!first) return <Placeholder query={query} />;
  if (rows.length === 0)
    return (
      <>
        <Schema difference={first} />
        <EmptyNote title={`No row of ${stream} differs.`} />
      </>
    );
  const isTickable = onRestoreRows !== undefined && first.key.length > 0;
  const all = first.is_total_exact ? `all ${countText(first.total)}` : "all rows that differ";
  const isMore = query.hasNextPage && !isEvery && ticked.size === rows.length;
  const selected = isEvery ? new Set(rows.map((_, index) => String(index))) : ticked;
  return (
    <>
      <div className="bar">
        {first.is_total_exact ? (
          <Changes counts={first.counts} />
        ) : (
          <Text>At least {countText(first.total)} rows differ.</Text>
        )}
        <Schema difference={first} />
        <Switch
          size="xs"
          ml="auto"
          label="All columns"
          checked={isAll}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      </div>
      <ChangedRows
        label={`Rows of ${stream} that differ`}
        rows={rows}
        keyNames={first.key}
        columns={first.columns}
        isAll={isAll}
        total={first.total}
        isTotalExact={first.is_total_exact}
        {...(isTickable && { selected, onSelect: select, isEvery })}
        onNearEnd={more}
      />
      {selected.size > 0 && (
        <section className="selection-bar" aria-label="Selection">
          <span role="status">
            {isEvery ? all.replace("all", "All") : countText(ticked.size)}
            {!isEvery && query.hasNextPage && first.is_total_exact && ` of ${countText(first.total)}`}{" "}
            selected
          </span>
          {isMore && <Button onClick={() => setEvery(true)}>Select {all}</Button>}
          <Button
            variant="filled"
            onClick={() =>
              onRestoreRows?.(
                isEvery
                  ? []
                  : rows
                      .filter((_, index) => ticked.has(String(index)))
                      .map((row) => keyOfRow(row, first.key)),
              )
            }
          >
            {verb} {isEvery ? all : counted(ticked.size, "row")}…
          </Button>
          <Button variant="subtle" ml="auto" onClick={() => select(NONE)}>
            Clear
          </Button>
        </section>
      )}
    </>
  );
}

function Schema({ difference }: { difference: RowDifference }) {
  const added = Object.entries(difference.columns_added).map(([name, type]) => `${name} (${type}) was added`);
  const dropped = Object.keys(difference.columns_dropped).map((name) => `${name} was dropped`);
  const retyped = Object.entries(difference.columns_retyped).map(
    ([name, [old, fresh]]) => `${name} was ${old} and is ${fresh}`,
  );
  const told = [...added, ...dropped, ...retyped];
  return told.length === 0 ? null : <Text>Schema: {told.join(", ")}.</Text>;
}
