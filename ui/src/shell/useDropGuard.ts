// A file dropped where nothing takes it must not make the browser leave the page for it.
import { useEffect } from "react";

export function useDropGuard(): void {
  useEffect(() => {
    function onDrag(event: DragEvent) {
      // Who takes files has said so by now; fields take text and links by themselves.
      if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    }
    window.addEventListener("dragover", onDrag);
    window.addEventListener("drop", onDrag);
    return () => {
      window.removeEventListener("dragover", onDrag);
      window.removeEventListener("drop", onDrag);
    };
  }, []);
}
