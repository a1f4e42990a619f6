// Two texts side by side with their differences; the right one may be changed, also by taking a piece over.
import { MergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { editing } from "./codemirror";
import "./files.css";

interface SideBySideProps {
  path: string;
  left: string;
  right: string;
  onChange?: (text: string) => void;
}

export default function SideBySide({ path, left, right, onChange }: SideBySideProps) {
  const place = useRef<HTMLDivElement>(null);
  const changed = useRef(onChange);
  changed.current = onChange;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the right text is the editor's own once it is there
  useEffect(() => {
    if (!place.current) return;
    const isReadOnly = changed.current === undefined;
    const view = new MergeView({
      parent: place.current,
      a: { doc: left, extensions: editing(path, true, "Left text") },
      b: {
        doc: right,
        extensions: [
          editing(path, isReadOnly, "Right text"),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed.current?.(update.state.doc.toString());
          }),
        ],
      },
      ...(isReadOnly ? {} : { revertControls: "a-to-b" as const }),
      collapseUnchanged: { margin: 3, minSize: 6 },
    });
    return () => view.destroy();
  }, [path, left]);

  return <div ref={place} className="editor-place" />;
}
