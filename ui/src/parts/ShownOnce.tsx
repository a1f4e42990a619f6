// A secret that is shown this once, to be copied.
import { Button, Code, CopyButton, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";

interface ShownOnceProps {
  title: string;
  secret: string;
  children?: ReactNode;
  onClose: () => void;
}

export function ShownOnce({ title, secret, children, onClose }: ShownOnceProps) {
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        {children && <Text size="sm">{children}</Text>}
        <Code block tabIndex={0} className="secret">
          {secret}
        </Code>
        <CopyButton value={secret}>
          {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : "Copy"}</Button>}
        </CopyButton>
      </Stack>
    </Dialog>
  );
}
