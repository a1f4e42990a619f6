// Signing in, with name and password or with a key that is pasted once. What was typed stays after a refusal.
import { Button, Paper, PasswordInput, SegmentedControl, Stack, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { signIn } from "@/api/changes";
import { whoQuery } from "@/api/queries";
import { ProblemNote } from "@/parts/ProblemNote";
import { providerAddress, waysQuery } from "@/session/ways";

export function SignInPage() {
  const [way, setWay] = useState<"person" | "key">("person");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [key, setKey] = useState("");
  const client = useQueryClient();
  const navigate = useNavigate();
  const { to } = useSearch({ from: "/sign-in" });
  const { data: ways } = useQuery(waysQuery);
  const entering = useMutation({
    mutationFn: () => signIn(way === "key" ? { key: key.trim() } : { name, password }),
    onSuccess: (who) => {
      client.clear();
      client.setQueryData(whoQuery.queryKey, who);
      // Only an address of these pages: never one that a link could have brought from elsewhere.
      const isOurs = to?.startsWith("/") && !to.startsWith("//") && !to.startsWith("/\\");
      void navigate({ href: isOurs ? to : "/", replace: true } as never);
    },
  });

  function enter(event: FormEvent) {
    event.preventDefault();
    entering.mutate();
  }

  return (
    <main className="sign-in">
      <Paper withBorder p="xl" w={380} maw="100%">
        <form onSubmit={enter}>
          <Stack gap="md">
            <Title order={1} size="h3">
              freezeframe
            </Title>
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
                  autoFocus
                  autoComplete="username"
                  value={name}
                  onChange={(event) => setName(event.currentTarget.value)}
                />
                <PasswordInput
                  label="Password"
                  required
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
              <Button component="a" href={providerAddress(to)} variant="default">
                Sign in with {ways.provider}
              </Button>
            )}
            <Text size="xs" c="dimmed">
              An admin makes people and keys: <code>freezeframe person create</code>,{" "}
              <code>freezeframe key create</code>.
            </Text>
          </Stack>
        </form>
      </Paper>
    </main>
  );
}
