// Files and folders that are dropped anywhere on the list become uploads into the folder that is shown.
import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { usePanel } from "@/navigation/panel";
import { tellProblem } from "@/parts/toasts";
import { droppedFiles, type PickedFile } from "@/uploads/dropped";
import { addUploads } from "@/uploads/queue";

export function DropZone({
  folder,
  isEnabled,
  children,
}: {
  folder: string;
  isEnabled: boolean;
  children: ReactNode;
}) {
  const { place } = usePanel();
  const [isOver, setOver] = useState(false);
  const depth = useRef(0);

  function count(step: number) {
    // Entering a child leaves its parent, so the zone is left when all that was entered is.
    depth.current = Math.max(0, depth.current + step);
    setOver(depth.current > 0);
  }

  function onDrop(event: DragEvent) {
    event.preventDefault();
    depth.current = 0;
    setOver(false);
    droppedFiles(event.dataTransfer).then((files) => addUploads(place, within(folder, files)), tellProblem);
  }

  if (!isEnabled) return <div className="drop-zone">{children}</div>;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the Upload button does the same
    <div
      className="drop-zone"
      data-over={isOver ? `Upload into ${folder || place.tenant}` : undefined}
      onDragEnter={() => count(1)}
      onDragLeave={() => count(-1)}
      onDragOver={(event) => {
        event.preventDefault();
        event.dataTransfer.dropEffect = "copy";
      }}
      onDrop={onDrop}
    >
      {children}
    </div>
  );
}

export function within(folder: string, files: readonly PickedFile[]): PickedFile[] {
  return files.map(({ path, file }) => ({ path: folder ? `${folder}/${path}` : path, file }));
}
