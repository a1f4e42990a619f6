// A key that is pasted, or an account of the provider. What was typed stays after a refusal.
import { Button, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { signIn } from "@/api/changes";
import type { Who } from "@/api/types";
import { ProblemNote } from "@/parts/ProblemNote";
import { providerAddress, waysQuery } from "./ways";

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
        <Button type="submit" loading={entering.isPending}>
          Sign in
        </Button>
        {ways?.provider && (
          <Button
            component="a"
            href={providerAddress(to)}
            variant="default"
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
