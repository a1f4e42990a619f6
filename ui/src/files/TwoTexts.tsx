// Two texts of a file side by side, once they have been read.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { EmptyNote, LateSkeleton, Placeholder } from "@/parts/states";

const SideBySide = lazy(() => import("./SideBySide"));

/** The text of each side; null where it is none. */
type Sides = Promise<({ text: string } | null)[]>;

export function TwoTexts(props: { path: string; queryKey: readonly unknown[]; read: () => Sides }) {
  const { path, queryKey, read } = props;
  const texts = useQuery(
    queryOptions({ queryKey, queryFn: read, gcTime: 0, staleTime: Number.POSITIVE_INFINITY }),
  );
  if (!texts.data) return <Placeholder query={texts} />;
  const [left, right] = texts.data;
  if (!left || !right) return <EmptyNote title="This file is not text." />;
  return (
    <Suspense fallback={<LateSkeleton />}>
      <SideBySide path={path} left={left.text} right={right.text} />
    </Suspense>
  );
}
