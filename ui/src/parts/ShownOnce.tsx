// A secret that is shown this once, to be copied.
import { Button, Code, CopyButton, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

interface ShownOnceProps {
  title: string;
  secret: string;
  children?: ReactNode;
  onClose: () => void;
}

export function ShownOnce({ title, secret, children, onClose }: ShownOnceProps) {
  return (
    <Modal opened onClose={onClose} title={title}>
      <Stack>
        {children && <Text size="sm">{children}</Text>}
        <Code block tabIndex={0} className="secret">
          {secret}
        </Code>
        <CopyButton value={secret}>
          {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : "Copy"}</Button>}
        </CopyButton>
      </Stack>
    </Modal>
  );
}
