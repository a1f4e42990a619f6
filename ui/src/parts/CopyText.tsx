// An id in monospace that is copied by a click.
import { Tooltip, UnstyledButton } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";

export function CopyText({ text, shown, label }: { text: string; shown?: string; label?: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  return (
    <Tooltip label={clipboard.copied ? "Copied" : `Copy ${label ?? text}`}>
      <UnstyledButton
        className="copy-text"
        aria-label={`Copy ${label ?? ""} ${text}`}
        onClick={(event) => {
          event.stopPropagation();
          clipboard.copy(text);
        }}
      >
        {shown ?? text}
      </UnstyledButton>
    </Tooltip>
  );
}
