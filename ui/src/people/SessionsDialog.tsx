// Where a person is signed in; one session is ended, or all.
import { Button, Group, Stack, Table, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Person } from "@/api/types";
import { Dialog } from "@/parts/Dialog";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { tellProblem } from "@/parts/toasts";
import { endSessions, sessionsQuery } from "./people";

export function SessionsDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  const client = useQueryClient();
  const list = useQuery(sessionsQuery(person.id));
  const ending = useMutation({
    mutationFn: (session: string | undefined) => endSessions(person.id, session),
    onError: tellProblem,
    onSettled: () => client.invalidateQueries({ queryKey: sessionsQuery(person.id).queryKey }),
  });
  return (
    <Dialog onClose={onClose} title={`Sessions of ${person.name}`}>
      {list.isPending ? (
        <LateSkeleton />
      ) : list.isLoadingError ? (
        <ProblemNote error={list.error} onRetry={() => list.refetch()} />
      ) : list.data.length === 0 ? (
        <Text size="sm">{person.name} is signed in nowhere.</Text>
      ) : (
        <Stack>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Signed in</Table.Th>
                <Table.Th>Ends</Table.Th>
                <Table.Th ta="right">Action</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {list.data.map((one) => (
                <Table.Tr key={one.id}>
                  <Table.Td>
                    <Moment at={one.created} />
                  </Table.Td>
                  <Table.Td>
                    <Moment at={one.expires} />
                  </Table.Td>
                  <Table.Td ta="right">
                    <Button
                      size="compact-xs"
                      variant="default"
                      disabled={ending.isPending}
                      aria-label={`End session ${one.id}`}
                      onClick={() => ending.mutate(one.id)}
                    >
                      End
                    </Button>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
          <Group justify="flex-end">
            <Button color="red" loading={ending.isPending} onClick={() => ending.mutate(undefined)}>
              End all sessions
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  );
}
