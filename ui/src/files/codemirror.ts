// What all our text editors share: keys, search, JSON, the page's colours and its nonce.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { styleNonce } from "@/parts/page";

const looks = EditorView.theme({
  "&": { fontSize: "12.5px", color: "var(--mantine-color-text)", backgroundColor: "transparent" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "1.55" },
  ".cm-gutters": {
    backgroundColor: "var(--console-shade)",
    color: "var(--mantine-color-dimmed)",
    border: "none",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--console-shade)" },
  // The editor takes a light ground for granted, and its caret would be black on a dark one.
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-panels": { backgroundColor: "var(--console-shade)", color: "var(--mantine-color-text)" },
});

export function editing(path: string, isReadOnly: boolean, label: string): Extension[] {
  return [
    EditorView.cspNonce.of(styleNonce()),
    lineNumbers(),
    history(),
    search({ top: true }),
    highlightSelectionMatches(),
    highlightActiveLine(),
    keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap]),
    // Its colours are made for a light ground; on a dark one the page's styles take them back.
    syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorState.readOnly.of(isReadOnly),
    looks,
    ...(path.endsWith(".json") ? [json()] : []),
  ];
}
