// Where a person is signed in; one session is ended, or all.
import { Button, Group, Modal, Stack, Table, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Person } from "@/api/types";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { tellProblem } from "@/parts/toasts";
import { useFocusBack } from "@/parts/useFocusBack";
import { endSessions, sessionsQuery } from "./people";

export function SessionsDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  useFocusBack();
  const client = useQueryClient();
  const list = useQuery(sessionsQuery(person.id));
  const ending = useMutation({
    mutationFn: (session: string | undefined) => endSessions(person.id, session),
    onError: tellProblem,
    onSettled: () => client.invalidateQueries({ queryKey: sessionsQuery(person.id).queryKey }),
  });
  return (
    <Modal opened onClose={onClose} title={`Sessions of ${person.name}`}>
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
                <Table.Th aria-label="Action" />
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
    </Modal>
  );
}
