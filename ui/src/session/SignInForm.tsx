// Name and password, or a key that is pasted once. What was typed stays after a refusal.
import { Button, PasswordInput, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { signIn } from "@/api/changes";
import type { Who } from "@/api/types";
import { ProblemNote } from "@/parts/ProblemNote";
import { providerAddress, waysQuery } from "./ways";

interface SignInFormProps {
  name?: string;
  /** The address to come to afterwards. */
  to?: string | undefined;
  /** It lies over a page that must stay. */
  isInDialog?: boolean;
  onEntered: (who: Who) => void;
}

export function SignInForm({ to, isInDialog = false, onEntered, ...props }: SignInFormProps) {
  const [way, setWay] = useState<"person" | "key">("person");
  const [name, setName] = useState(props.name ?? "");
  const [password, setPassword] = useState("");
  const [key, setKey] = useState("");
  const { data: ways } = useQuery(waysQuery);
  const entering = useMutation({
    mutationFn: () => signIn(way === "key" ? { key: key.trim() } : { name, password }),
    onSuccess: onEntered,
  });

  function enter(event: FormEvent) {
    event.preventDefault();
    if (!entering.isPending) entering.mutate();
  }

  return (
    <form onSubmit={enter}>
      <Stack gap="md">
        <SegmentedControl
          aria-label="How to sign in"
          value={way}
          onChange={(value) => setWay(value as "person" | "key")}
          data={[
            { value: "person", label: "Person" },
            { value: "key", label: "API key" },
          ]}
        />
        {way === "person" ? (
          <>
            <TextInput
              label="Name"
              required
              autoFocus={!props.name}
              data-autofocus={!props.name || undefined}
              autoComplete="username"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <PasswordInput
              label="Password"
              required
              data-autofocus={Boolean(props.name) || undefined}
              autoComplete="current-password"
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          </>
        ) : (
          <PasswordInput
            label="API key"
            description="It is kept in a cookie that no script can read."
            required
            autoFocus
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
        )}
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
            An admin makes people and keys: <code>freezeframe person create</code>,{" "}
            <code>freezeframe key create</code>.
          </Text>
        )}
      </Stack>
    </form>
  );
}
