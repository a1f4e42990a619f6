// A picture as it is. Scripts in it cannot run: it is an image of the page, not a document.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { readBytes } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";

export function Picture({ path, type }: { path: string; type: string }) {
  const { place, version } = usePanel();
  const [size, setSize] = useState("");
  const [isBroken, setBroken] = useState(false);
  const content = useQuery({
    queryKey: [...tenantKey(place), "picture", path, version ?? "now"],
    queryFn: async () => dataUrl((await readBytes(place, path, version)).bytes, type),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (content.isPending) return <LateSkeleton />;
  if (content.isError) return <ProblemNote error={content.error} onRetry={() => content.refetch()} />;
  if (isBroken)
    return (
      <EmptyNote title="This file is not an image that the browser can show.">
        Download it to see what it is.
      </EmptyNote>
    );
  return (
    <>
      <div className="picture">
        <img
          src={content.data}
          alt={`Content of ${path}`}
          onLoad={({ currentTarget: one }) => setSize(`${one.naturalWidth} × ${one.naturalHeight} pixels`)}
          onError={() => setBroken(true)}
        />
      </div>
      <Text size="xs" c="dimmed" role="status">
        {size}
      </Text>
    </>
  );
}

/** The page's policy shows pictures of data, and no other addresses. */
function dataUrl(bytes: BlobPart, type: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([bytes], { type }));
  });
}
