// Who may sign in, for admins: invited, changed, disabled, signed out. An invitation is shown once.
import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { whoQuery } from "@/api/queries";
import type { Invitation, Person } from "@/api/types";
import { ConfirmDialog } from "@/parts/ConfirmDialog";
import { EmptyNote } from "@/parts/EmptyNote";
import { ListPage } from "@/parts/ListPage";
import { Moment } from "@/parts/Moment";
import { RowActions } from "@/parts/RowActions";
import { ShownOnce } from "@/parts/ShownOnce";
import { tellProblem } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { PersonDialog } from "./PersonDialog";
import { changePerson, peopleQuery, resetPassword } from "./people";
import { SessionsDialog } from "./SessionsDialog";

type Open = { what: "change" | "sessions" | "disable"; person: Person } | { what: "invite" } | null;

export function PeoplePage() {
  const client = useQueryClient();
  const { data: who } = useQuery(whoQuery);
  const list = useQuery(peopleQuery);
  const [open, setOpen] = useState<Open>(null);
  const [invitation, setInvitation] = useState<Invitation | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: peopleQuery.queryKey });
  const close = () => setOpen(null);
  const inviting = useMutation({
    mutationFn: (person: Person) => resetPassword(person.id),
    onSuccess: setInvitation,
    onError: tellProblem,
  });
  const disabling = useMutation({
    mutationFn: (person: Person) => changePerson(person.id, { is_disabled: person.disabled === null }),
    onSuccess: close,
    onError: tellProblem,
    onSettled: refresh,
  });
  const columns = columnsOf(who?.id, inviting.isPending || disabling.isPending, {
    change: (person) => setOpen({ what: "change", person }),
    reset: (person) => inviting.mutate(person),
    sessions: (person) => setOpen({ what: "sessions", person }),
    disable: (person) =>
      person.disabled === null ? setOpen({ what: "disable", person }) : disabling.mutate(person),
  });
  return (
    <ListPage
      title="People"
      words={["person", "people"]}
      query={list}
      rows={list.data ?? []}
      columns={columns}
      keyOf={(person) => person.id}
      nameOf={(person) => person.name}
      minWidth={900}
      action={
        <Button size="sm" onClick={() => setOpen({ what: "invite" })}>
          Invite a person
        </Button>
      }
      empty={
        <EmptyNote title="No person yet.">Who has no key needs an account to use the console.</EmptyNote>
      }
    >
      {(open?.what === "invite" || open?.what === "change") && (
        <PersonDialog
          person={open.what === "change" ? open.person : null}
          onClose={close}
          onDone={(made) => {
            close();
            setInvitation(made);
            void refresh();
          }}
        />
      )}
      {open?.what === "sessions" && <SessionsDialog person={open.person} onClose={close} />}
      {open?.what === "disable" && (
        <ConfirmDialog
          title={`Disable ${open.person.name}?`}
          verb="Disable"
          isSending={disabling.isPending}
          onConfirm={() => disabling.mutate(open.person)}
          onClose={close}
        >
          They are signed out at once, and cannot sign in until they are enabled again. What they did stays in
          the audit.
        </ConfirmDialog>
      )}
      {invitation && <InvitationDialog invitation={invitation} onClose={() => setInvitation(null)} />}
    </ListPage>
  );
}

function InvitationDialog({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  // After a hash, which no browser sends to a server: the invitation is in no access log.
  const link = `${window.location.origin}/invitation#${invitation.invitation}`;
  return (
    <ShownOnce title="The invitation is shown this once" secret={link} onClose={onClose}>
      With this address {invitation.person.name} sets a password, once, within three days.
    </ShownOnce>
  );
}

type Act = (person: Person) => void;

function columnsOf(
  own: string | undefined,
  isBusy: boolean,
  acts: { change: Act; reset: Act; sessions: Act; disable: Act },
): Column<Person>[] {
  return [
    {
      id: "name",
      header: "Name",
      width: "minmax(110px, 1fr)",
      cell: (person) => (
        <span title={person.name}>
          <strong>{person.name}</strong>
          {person.id === own && <span className="dim"> (you)</span>}
        </span>
      ),
    },
    { id: "role", header: "Role", width: "76px", cell: (person) => person.role },
    {
      id: "bounds",
      header: "For",
      width: "minmax(100px, 1fr)",
      cell: (person) => {
        const bounds = boundsText(person);
        return <span title={bounds}>{bounds}</span>;
      },
    },
    {
      id: "state",
      header: "State",
      width: "150px",
      cell: (person) =>
        person.disabled ? (
          <span className="mark-gone">
            disabled <Moment at={person.disabled} />
          </span>
        ) : person.is_provided ? (
          "identity provider"
        ) : (
          <>
            since <Moment at={person.created} />
          </>
        ),
    },
    {
      id: "actions",
      header: "Actions",
      width: "348px",
      align: "right",
      cell: (person) => (
        <RowActions
          of={person.name}
          isBusy={isBusy}
          actions={[
            person.id !== own && { label: "Change", act: () => acts.change(person) },
            !person.is_provided &&
              person.disabled === null && { label: "Reset password", act: () => acts.reset(person) },
            { label: "Sessions", act: () => acts.sessions(person) },
            person.id !== own && {
              label: person.disabled === null ? "Disable" : "Enable",
              act: () => acts.disable(person),
            },
          ]}
        />
      ),
    },
  ];
}

function boundsText(person: Person): string {
  const environments = person.environments?.join(", ");
  const tenants = person.tenants?.join(", ");
  if (tenants !== undefined) return environments === undefined ? tenants : `${tenants} in ${environments}`;
  return environments === undefined ? "all tenants" : `all of ${environments}`;
}
