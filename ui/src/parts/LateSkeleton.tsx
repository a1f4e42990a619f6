// Grey lines in place of what is being fetched, but only once that takes longer than an eye notices.
import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { useEffect, useState } from "react";

const PATIENCE_MS = 150;

export function LateSkeleton({ lines = 6, label = "Loading" }: { lines?: number; label?: string }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" className="skeleton">
      <VisuallyHidden>{label}</VisuallyHidden>
      {isLate && (
        <Stack gap="sm" p="md">
          {Array.from({ length: lines }, (_, line) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same
            <Skeleton key={line} height={16} width={`${90 - (line % 4) * 12}%`} />
          ))}
        </Stack>
      )}
    </div>
  );
}
