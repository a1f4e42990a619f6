// A dialog, open as long as it is in the page; what had the focus before has it again when the dialog goes.
import { Modal, type ModalProps } from "@mantine/core";
import { useFocusBack } from "./useFocusBack";

export function Dialog(props: Omit<ModalProps, "opened">) {
  useFocusBack();
  return <Modal opened {...props} />;
}
