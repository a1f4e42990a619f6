// A person who is invited, or another role and other limits of one who is there.
import { Select, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Invitation, Person } from "@/api/types";
import { type Bounds, BoundsFields } from "@/parts/BoundsFields";
import { Dialog } from "@/parts/Dialog";
import { FormFooter } from "@/parts/FormFooter";
import { changePerson, invitePerson } from "./people";

const ROLES = [
  { value: "viewer", label: "viewer: reads, but no sealed file" },
  { value: "editor", label: "editor: reads, changes and runs jobs" },
  { value: "admin", label: "admin: all, and manages keys and people" },
];

interface PersonDialogProps {
  /** Null: a new one. */
  person: Person | null;
  onClose: () => void;
  /** With the invitation of a new person. */
  onDone: (made: Invitation | null) => void;
}

export function PersonDialog({ person, onClose, onDone }: PersonDialogProps) {
  const [name, setName] = useState(person?.name ?? "");
  const [role, setRole] = useState<Person["role"]>(person?.role ?? "viewer");
  const [bounds, setBounds] = useState<Bounds>({
    environments: person?.environments ?? null,
    tenants: person?.tenants ?? null,
  });
  const sending = useMutation({
    mutationFn: async () => {
      const order = { role, ...bounds };
      if (person === null) return invitePerson({ name: name.trim(), ...order });
      await changePerson(person.id, order);
      return null;
    },
    onSuccess: onDone,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!sending.isPending) sending.mutate();
  }
  return (
    <Dialog onClose={onClose} title={person === null ? "Invite a person" : `Change ${person.name}`}>
      <form onSubmit={submit}>
        <Stack>
          {person === null && (
            <TextInput
              data-autofocus
              label="Name"
              description="The person signs in with it."
              required
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          )}
          <Select
            label="Role"
            data={ROLES}
            value={role}
            allowDeselect={false}
            data-autofocus={person !== null || undefined}
            onChange={(value) => value !== null && setRole(value as Person["role"])}
          />
          <BoundsFields value={bounds} onChange={setBounds} />
          <FormFooter sending={sending} verb={person === null ? "Invite" : "Change"} onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
