// A text with its differences from what is kept, marked in place while one types.
import { unifiedMergeView } from "@codemirror/merge";
import { openSearchPanel } from "@codemirror/search";
import { EditorView, keymap } from "@codemirror/view";
import { ActionIcon, Tooltip } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { editing } from "./codemirror";

interface TextEditorProps {
  path: string;
  original: string;
  value: string;
  onChange: (text: string) => void;
  /** Ctrl+S, which would save the page itself. */
  onSave: () => void;
  isReadOnly: boolean;
}

export default function TextEditor({ path, original, value, onChange, onSave, isReadOnly }: TextEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const saved = useRef(onSave);
  saved.current = onSave;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the text is the editor's own once it is there
  useEffect(() => {
    if (!place.current) return;
    view.current = new EditorView({
      parent: place.current,
      doc: value,
      extensions: [
        editing(path, isReadOnly, `Content of ${path}`),
        isReadOnly ? [] : unifiedMergeView({ original, mergeControls: false, gutter: true }),
        keymap.of([
          {
            key: "Mod-s",
            run: () => {
              saved.current();
              return true;
            },
          },
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed.current(update.state.doc.toString());
        }),
      ],
    });
    return () => view.current?.destroy();
  }, [path, original, isReadOnly]);

  useEffect(() => {
    const current = view.current;
    if (!current || current.state.doc.toString() === value) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
  }, [value]);

  return (
    <>
      <Tooltip label="Search (Ctrl+F)">
        <ActionIcon
          className="editor-search"
          variant="default"
          size="sm"
          aria-label={`Search ${path}`}
          onClick={() => view.current && openSearchPanel(view.current)}
        >
          <IconSearch size={14} />
        </ActionIcon>
      </Tooltip>
      <div ref={place} className="editor-place" />
    </>
  );
}
