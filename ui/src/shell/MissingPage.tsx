// The answer to an address that has no page.
import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { EmptyNote } from "@/parts/EmptyNote";

export function MissingPage() {
  return (
    <main>
      <EmptyNote title="This page does not exist." isPage>
        <Anchor component={Link} to="/tenants">
          Go to the tenants
        </Anchor>
      </EmptyNote>
    </main>
  );
}
