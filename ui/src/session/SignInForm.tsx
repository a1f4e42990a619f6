// A key that is pasted, or an account of the provider. What was typed stays after a refusal.
import { Button, Paper, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { signIn } from "@/api/changes";
import { whoQuery } from "@/api/queries";
import type { Who } from "@/api/types";
import { ProblemNote } from "@/parts/states";
import { providerAddress, setEnded, waysQuery } from "./session";

interface SignInFormProps {
  /** The address to come to afterwards. */
  to?: string | undefined;
  /** From the address's hash: what `freezeframe serve` printed, which signs in once. */
  link?: string;
  /** It lies over a page that must stay. */
  isInDialog?: boolean;
  onEntered: (who: Who) => void;
}

export function SignInForm({ to, link = "", isInDialog = false, onEntered }: SignInFormProps) {
  const [key, setKey] = useState("");
  const isSent = useRef(false);
  const { data: ways } = useQuery(waysQuery);
  const entering = useMutation({ mutationFn: signIn, onSuccess: onEntered });
  const { mutate } = entering;

  useEffect(() => {
    if (link && !isSent.current) {
      isSent.current = true; // it is good once
      mutate({ link });
    }
  }, [link, mutate]);

  function enter(event: FormEvent) {
    event.preventDefault();
    if (!entering.isPending) mutate({ key: key.trim() });
  }

  return (
    <form onSubmit={enter}>
      <Stack gap="md">
        <PasswordInput
          label="API key"
          description="The browser keeps a session cookie, not the key."
          required
          autoFocus
          data-autofocus
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        {entering.isError && <ProblemNote error={entering.error} />}
        <Button size="sm" variant="filled" type="submit" loading={entering.isPending}>
          Sign in
        </Button>
        {ways?.provider && (
          <Button
            size="sm"
            component="a"
            href={providerAddress(to)}
            {...(isInDialog && { target: "_blank", rel: "noopener" })}
          >
            Sign in with {ways.provider}
          </Button>
        )}
        {!isInDialog && (
          <Text size="xs" c="dimmed">
            <code>freezeframe key create</code> creates a key.
          </Text>
        )}
      </Stack>
    </form>
  );
}

/** The page of who is not signed in: afterwards one comes to the address that was asked for. */
export function SignInPage() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { to } = useSearch({ from: "/sign-in" });
  const [link] = useState(() => window.location.hash.slice(1));

  function onEntered(who: Who) {
    setEnded(false);
    client.clear();
    client.setQueryData(whoQuery.queryKey, who);
    // Only an address of these pages: never one that a link could have brought from elsewhere.
    const isOurs = to?.startsWith("/") && !to.startsWith("//") && !to.startsWith("/\\");
    void navigate({ href: isOurs ? to : "/", replace: true } as never);
  }

  return (
    <EntryFrame>
      <SignInForm to={to} link={link} onEntered={onEntered} />
    </EntryFrame>
  );
}

/** What stands around the forms of who is not signed in. */
function EntryFrame({ children }: { children: ReactNode }) {
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
