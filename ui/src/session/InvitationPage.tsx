// Who was invited sets a password here, and signs in with it afterwards. The invitation is behind the address's hash.
import { Button, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { acceptInvitation } from "@/api/changes";
import { ProblemNote } from "@/parts/ProblemNote";
import { EntryFrame } from "./EntryFrame";
import { NewPassword } from "./NewPassword";

export function InvitationPage() {
  const navigate = useNavigate();
  const [given] = useState(() => decodeURIComponent(window.location.hash.slice(1)));
  const [invitation, setInvitation] = useState(given);
  const [password, setPassword] = useState("");
  const setting = useMutation({
    mutationFn: () => acceptInvitation(invitation.trim(), password),
    onSuccess: () => navigate({ to: "/sign-in", search: { to: undefined }, replace: true }),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!setting.isPending) setting.mutate();
  }
  return (
    <EntryFrame>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">Choose the password that you will sign in with.</Text>
          {given === "" && (
            <TextInput
              label="Invitation"
              description="From an admin; it is valid once, for three days."
              required
              autoComplete="off"
              value={invitation}
              onChange={(event) => setInvitation(event.currentTarget.value)}
            />
          )}
          <NewPassword value={password} onChange={setPassword} />
          {setting.isError && <ProblemNote error={setting.error} />}
          <Button type="submit" loading={setting.isPending}>
            Set password
          </Button>
        </Stack>
      </form>
    </EntryFrame>
  );
}
