// The list of keys, shown by `?`.
import { Kbd, Modal, Table } from "@mantine/core";
import { SHORTCUTS } from "@/parts/shortcuts";

export function ShortcutList({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Keyboard shortcuts" size="sm" zIndex={300}>
      <Table>
        <Table.Tbody>
          {SHORTCUTS.map(([keys, does]) => (
            <Table.Tr key={keys}>
              <Table.Td>
                <Kbd>{keys}</Kbd>
              </Table.Td>
              <Table.Td>{does}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
