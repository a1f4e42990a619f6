// A page that is one list: its title and what makes a new entry, the list as it comes in, or what is said without one.
import { Button, Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { counted } from "@/parts/formats";
import { Placeholder } from "@/parts/states";
import { VirtualGrid, type VirtualGridProps } from "@/parts/VirtualGrid";
import { PageHead } from "./PageHead";

interface ListPageProps<Row> extends Omit<VirtualGridProps<Row>, "label" | "rows" | "onNearEnd"> {
  /** The page's heading, and the name of the grid. */
  title: string;
  /** What a row is, as the count below the list says. */
  noun: string;
  list: {
    query: {
      isPending: boolean;
      isLoadingError: boolean;
      error: unknown;
      refetch: () => unknown;
      hasNextPage: boolean;
    };
    entries: readonly Row[];
    more: () => void;
  };
  /** Said after the count. */
  note?: string | undefined;
  /** The button that makes a new entry, or what the list is filtered by. */
  action?: ReactNode;
  /** What the list is of, above it. */
  intro?: ReactNode;
  /** What is shown where there is no entry. */
  empty: ReactNode;
  /** Dialogs. */
  children?: ReactNode;
}

export function ListPage<Row>(props: ListPageProps<Row>) {
  const { title, noun, note, list, action, intro, empty, children, ...grid } = props;
  const { query, entries: rows, more } = list;
  return (
    <div className="page">
      <PageHead title={title}>{action}</PageHead>
      {intro}
      {query.isPending || query.isLoadingError ? (
        <Placeholder query={query} />
      ) : rows.length === 0 ? (
        empty
      ) : (
        <>
          <VirtualGrid {...grid} label={title} rows={rows} onNearEnd={more} />
          <Text size="xs" c="dimmed" role="status">
            {counted(rows.length, noun)}
            {query.hasNextPage && " · scroll for more"}
            {note && ` · ${note}`}
          </Text>
        </>
      )}
      {children}
    </div>
  );
}

interface RowAction {
  label: string;
  act: () => void;
  title?: string;
}

interface RowActionsProps {
  /** What the row is about, for those who hear the buttons. */
  of: string;
  isBusy: boolean;
  actions: readonly (RowAction | false)[];
}

/** The buttons of a row of a list, each of which says what it is about. */
export function RowActions({ of, isBusy, actions }: RowActionsProps) {
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {actions.map(
        (one) =>
          one && (
            <Button
              key={one.label}
              size="compact-xs"
              disabled={isBusy}
              title={one.title}
              aria-label={`${one.label}: ${of}`}
              onClick={one.act}
            >
              {one.label}
            </Button>
          ),
      )}
    </Group>
  );
}
