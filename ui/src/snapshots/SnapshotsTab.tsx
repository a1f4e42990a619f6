// The Snapshots tab: a folder's list, or the stream or file that is open below the breadcrumb.
import { lazy, Suspense } from "react";
import { usePanel } from "@/navigation/panel";
import { LateSkeleton } from "@/parts/states";
import { Breadcrumb } from "./Breadcrumb";
import { FolderList } from "./FolderList";

const FilePage = lazy(() => import("@/files/FilePage"));
const StreamPage = lazy(() => import("@/streams/StreamPage"));

export function SnapshotsTab() {
  const { search } = usePanel();
  if (!search.file && !search.stream) return <FolderList />;
  return (
    <>
      <Breadcrumb />
      <Suspense fallback={<LateSkeleton />}>{search.stream ? <StreamPage /> : <FilePage />}</Suspense>
    </>
  );
}
