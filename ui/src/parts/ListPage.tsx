// A page that is one list: its title and what makes a new entry, the list as it comes in, or what is said without one.
import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { countText } from "./formats";
import { LateSkeleton } from "./LateSkeleton";
import { ProblemNote } from "./ProblemNote";
import { VirtualGrid, type VirtualGridProps } from "./VirtualGrid";

/** What a page needs of a query for all, or for page after page. */
interface ListQuery {
  isPending: boolean;
  isLoadingError: boolean;
  error: unknown;
  refetch: () => unknown;
  hasNextPage?: boolean;
  isFetchingNextPage?: boolean;
  fetchNextPage?: () => unknown;
}

interface ListPageProps<Row> extends Omit<VirtualGridProps<Row>, "label" | "rows" | "onNearEnd"> {
  /** The page's heading, and the name of the grid. */
  title: string;
  /** One and many of the rows, as the count below the list says: `["key", "keys"]`. */
  words: readonly [one: string, many: string];
  query: ListQuery;
  rows: readonly Row[];
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
  const { title, words, note, query, rows, action, intro, empty, children, ...grid } = props;
  return (
    <div className="page">
      <div className="page-head">
        <h1>{title}</h1>
        {action}
      </div>
      {intro}
      {query.isPending ? (
        <LateSkeleton />
      ) : query.isLoadingError ? (
        <ProblemNote error={query.error} onRetry={() => query.refetch()} />
      ) : rows.length === 0 ? (
        empty
      ) : (
        <>
          <VirtualGrid
            {...grid}
            label={title}
            rows={rows}
            onNearEnd={() => {
              if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage?.();
            }}
          />
          <Text size="xs" c="dimmed" role="status">
            {countText(rows.length)} {words[rows.length === 1 ? 0 : 1]}
            {query.hasNextPage && " · scroll for more"}
            {note && ` · ${note}`}
          </Text>
        </>
      )}
      {children}
    </div>
  );
}
