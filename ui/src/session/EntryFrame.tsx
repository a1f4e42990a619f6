// What stands around the forms of who is not signed in.
import { Paper, Title } from "@mantine/core";
import type { ReactNode } from "react";

export function EntryFrame({ children }: { children: ReactNode }) {
  return (
    <main className="sign-in">
      <Paper withBorder p="xl" w={380} maw="100%">
        <Title order={1} size="h3" mb="md">
          freezeframe
        </Title>
        {children}
      </Paper>
    </main>
  );
}
