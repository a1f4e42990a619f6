// What stands where nothing is: one sentence, and how something gets there.
import { Box, Button, Code, CopyButton, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

export function EmptyNote({
  title,
  children,
  example,
  isPage = false,
}: {
  title: string;
  /** Whether it is all of its page, whose heading is the title then. */
  isPage?: boolean;
  children?: ReactNode;
  example?: string;
}) {
  return (
    <Stack gap="xs" align="center" className="empty" p="xl">
      <Text fw={600} m={0} {...(isPage && { component: "h1" as const })}>
        {title}
      </Text>
      {children && (
        <Text size="sm" c="dimmed" ta="center" maw={460} component="div">
          {children}
        </Text>
      )}
      {example && (
        <Box maw="100%">
          <Code block tabIndex={0}>
            {example}
          </Code>
          <Group justify="flex-end" mt={4}>
            <CopyButton value={example}>
              {({ copied, copy }) => (
                <Button size="compact-xs" variant="subtle" onClick={copy}>
                  {copied ? "Copied" : "Copy"}
                </Button>
              )}
            </CopyButton>
          </Group>
        </Box>
      )}
    </Stack>
  );
}
