// Another value for one cell of a row, as one version, if the tenant is still what was shown.
import { Checkbox, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { changeRow } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { asProblem, PRECONDITION_FAILED } from "@/api/problem";
import { overviewQuery } from "@/api/queries";
import type { RowChangeOrder } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { tell } from "@/parts/toasts";
import { Cell } from "@/parts/values";
import { useReason } from "@/session/reason";

interface CellDialogProps {
  stream: string;
  /** The row's key, by column. */
  rowKey: RowChangeOrder["key"];
  name: string;
  column: string;
  value: unknown;
  onClose: () => void;
}

export function CellDialog({ stream, rowKey: key, name, column, value, onClose }: CellDialogProps) {
  const { place } = usePanel();
  const client = useQueryClient();
  const now = useQuery(overviewQuery(place)).data?.etag;
  // What was shown when it was opened, and after a refusal what is there since.
  const [etag, setEtag] = useState(now);
  const [text, setText] = useState(value === null ? "" : String(value));
  const [isNull, setNull] = useState(value === null);
  const { message, field, isMissing } = useReason();
  const saving = useMutation({
    mutationFn: () => {
      const values = { [column]: isNull ? null : text };
      return changeRow(place, stream, { key, values, message }, etag ?? now ?? '""');
    },
    onSuccess: async (done) => {
      onClose();
      tell(done.committed ? `Saved as version ${done.tenant_version}.` : "The cell had that value already.");
      await client.invalidateQueries({ queryKey: tenantKey(place) });
    },
    onError: (error) => {
      if (asProblem(error).status !== PRECONDITION_FAILED) return;
      setEtag(client.getQueryData(overviewQuery(place).queryKey)?.etag);
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!saving.isPending) saving.mutate();
  }
  return (
    <Dialog onClose={onClose} title={`Change ${column} of ${stream} ${name}`}>
      <form onSubmit={submit}>
        <Stack>
          <Text>
            Now: <Cell value={value} />
          </Text>
          <TextInput
            data-autofocus
            label={column}
            disabled={isNull}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Checkbox
            label="Missing (null)"
            checked={isNull}
            onChange={(event) => setNull(event.currentTarget.checked)}
          />
          {field}
          <FormFooter sending={saving} verb="Save" disabled={isMissing} onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
