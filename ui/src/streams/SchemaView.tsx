// A stream's columns: Delta's types, and which of them are the key.
import { Badge, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { streamQuery } from "@/api/queries";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { usePanel } from "@/tenants/panel";

export function SchemaView({ stream }: { stream: string }) {
  const { place } = usePanel();
  const detail = useQuery(streamQuery(place, stream));
  if (detail.isPending) return <LateSkeleton />;
  if (detail.isError) return <ProblemNote error={detail.error} onRetry={() => detail.refetch()} />;
  return (
    <Table.ScrollContainer minWidth={320}>
      <Table aria-label={`Columns of ${stream}`}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Column</Table.Th>
            <Table.Th>Type</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {detail.data.columns.map((column) => (
            <Table.Tr key={column.name}>
              <Table.Td>{column.name}</Table.Td>
              <Table.Td className="mono">
                {column.is_undecided ? "undecided: no value yet" : column.type}
              </Table.Td>
              <Table.Td>{detail.data.key.includes(column.name) && <Badge size="sm">key</Badge>}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
