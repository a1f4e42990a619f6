// The service's keys, for admins: made, rotated, revoked. A secret is shown once.
import {
  Button,
  Code,
  CopyButton,
  MultiSelect,
  NumberInput,
  Stack,
  TagsInput,
  TextInput,
} from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createKey, revokeKey, rotateKey } from "@/api/changes";
import { keysQuery, useList } from "@/api/queries";
import type { Key, Scope } from "@/api/types";
import { ListPage, RowActions } from "@/navigation/ListPage";
import { ConfirmDialog, Dialog, FormFooter } from "@/parts/dialogs";
import { EmptyNote } from "@/parts/states";
import { tellProblem } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { Moment } from "@/parts/values";
import { useMay } from "@/session/session";

const SCOPES: Scope[] = [
  "tenants:read",
  "snapshots:read",
  "snapshots:write",
  "snapshots:delete",
  "jobs:read",
  "jobs:run",
  "secrets:read",
  "admin",
];
const OVERLAP_HOURS = 24;

export function KeysPage() {
  const client = useQueryClient();
  const may = useMay();
  const list = useList(keysQuery, (page) => page.keys);
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<Key | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: ["keys"] });
  const rotating = useMutation({
    mutationFn: (id: string) => rotateKey(id, OVERLAP_HOURS),
    onSuccess: (made) => setSecret(made.key),
    onError: tellProblem,
    onSettled: refresh,
  });
  const revoking = useMutation({
    mutationFn: (id: string) => revokeKey(id),
    onSuccess: () => setRevoked(null),
    onSettled: refresh,
  });
  const columns = columnsOf(rotating.isPending, (id) => rotating.mutate(id), setRevoked);
  return (
    <ListPage
      title="Keys"
      noun="key"
      list={list}
      columns={columns}
      keyOf={(key) => key.id}
      minWidth={720}
      action={
        may("admin") && (
          <Button variant="filled" size="sm" onClick={() => setCreating(true)}>
            Create key
          </Button>
        )
      }
      empty={<EmptyNote title="No key yet.">A program needs one to use the API.</EmptyNote>}
    >
      {isCreating && (
        <CreateKey
          onClose={() => setCreating(false)}
          onCreated={(text) => {
            setCreating(false);
            setSecret(text);
            void refresh();
          }}
        />
      )}
      {secret !== null && <ShownOnce secret={secret} onClose={() => setSecret(null)} />}

      {revoked && (
        <ConfirmDialog
          title={`Revoke ${revoked.name || revoked.id}?`}
          verb="Revoke"
          sending={revoking}
          onAct={() => revoking.mutate(revoked.id)}
          onClose={() => setRevoked(null)}
        >
          Requests with this key are refused within a second. This cannot be undone.
        </ConfirmDialog>
      )}
    </ListPage>
  );
}

function columnsOf(isBusy: boolean, rotate: (id: string) => void, revoke: (key: Key) => void): Column<Key>[] {
  return [
    {
      id: "name",
      header: "Name",
      width: "minmax(90px, 1fr)",
      cell: (key) => key.name || <span className="mono">{key.id}</span>,
    },
    {
      id: "scopes",
      header: "Scopes",
      width: "minmax(120px, 1.5fr)",
      isExtra: true,
      cell: (key) => <span title={key.scopes.join(", ")}>{key.scopes.join(", ")}</span>,
    },
    {
      id: "bound",
      header: "For",
      width: "minmax(90px, 1fr)",
      isExtra: true,
      cell: (key) => [...(key.environments ?? []), ...(key.tenants ?? [])].join(", ") || "all tenants",
    },
    {
      id: "used",
      header: "Last used",
      width: "86px",
      isExtra: true,
      cell: (key) =>
        key.last_used ? <Moment at={key.last_used} /> : <span className="null-dash">never</span>,
    },
    { id: "state", header: "State", width: "minmax(60px, 124px)", cell: state },
    {
      id: "actions",
      header: "Actions",
      width: "130px",
      align: "right",
      cell: (key) =>
        key.revoked === null && (
          <RowActions
            of={key.name || key.id}
            isBusy={isBusy}
            actions={[
              {
                label: "Rotate",
                act: () => rotate(key.id),
                title: `The old secret stays valid for ${OVERLAP_HOURS} hours`,
              },
              { label: "Revoke", act: () => revoke(key) },
            ]}
          />
        ),
    },
  ];
}

function state(key: Key) {
  if (key.revoked) return <span className="mark-gone">revoked</span>;
  if (!key.expires) return "active";
  return (
    <>
      {Date.parse(key.expires) < Date.now() ? "expired " : "expires "}
      <Moment at={key.expires} />
    </>
  );
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: (text: string) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["tenants:read", "snapshots:read"]);
  const [bounds, setBounds] = useState<Bounds>({ environments: null, tenants: null });
  const [days, setDays] = useState<number | string>(90);
  const creating = useMutation({
    mutationFn: () =>
      createKey({
        name: name.trim(),
        scopes,
        ...bounds,
        days: typeof days === "number" ? days : null,
      }),
    onSuccess: (made) => onCreated(made.key),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    creating.mutate();
  }
  return (
    <Dialog onClose={onClose} title="Create key">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            label="Name"
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <MultiSelect
            label="Scopes"
            data={SCOPES}
            value={scopes}
            onChange={(value) => setScopes(value as Scope[])}
            required
          />
          <BoundsFields value={bounds} onChange={setBounds} />
          <NumberInput
            label="Valid for days"
            description="If empty, the key does not expire."
            min={1}
            value={days}
            onChange={setDays}
          />
          <FormFooter sending={creating} verb="Create" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}

interface Bounds {
  /** Null: all. */
  environments: string[] | null;
  tenants: string[] | null;
}

interface BoundsFieldsProps {
  value: Bounds;
  onChange: (bounds: Bounds) => void;
}

/** To which environments and tenants a key or a person is limited. */
function BoundsFields({ value, onChange }: BoundsFieldsProps) {
  return (
    <>
      <TagsInput
        label="Environments"
        description="If empty: all."
        value={value.environments ?? []}
        onChange={(names) => onChange({ ...value, environments: someOrAll(names) })}
      />
      <TagsInput
        label="Tenants"
        description="If empty: all."
        value={value.tenants ?? []}
        onChange={(names) => onChange({ ...value, tenants: someOrAll(names) })}
      />
    </>
  );
}

function someOrAll(names: string[]): string[] | null {
  return names.length > 0 ? names : null;
}

/** A secret that is shown this once, to be copied. */
function ShownOnce({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title="Copy the key now: it is not shown again">
      <Stack>
        <Code block tabIndex={0} className="secret">
          {secret}
        </Code>
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button size="sm" variant="filled" onClick={copy}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Stack>
    </Dialog>
  );
}
