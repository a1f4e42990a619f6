// The seed's four buttons: Upload, Create folder, Download, Delete. Who may not do one does not see it.
import { ActionIcon, Button, Menu } from "@mantine/core";
import { IconChevronDown, IconDownload, IconFolderPlus, IconTrash, IconUpload } from "@tabler/icons-react";
import { type RefObject, useRef } from "react";
import { usePanel } from "@/navigation/panel";
import { chosenFiles } from "@/uploads/dropped";
import { addUploads } from "@/uploads/queue";
import { within } from "./DropZone";

interface FolderActionsProps {
  folder: string;
  chooser: RefObject<HTMLInputElement | null>;
  canWrite: boolean;
  canDelete: boolean;
  hasChosen: boolean;
  onCreateFolder: () => void;
  onDownload: () => void;
  onDelete: () => void;
}

export function FolderActions(props: FolderActionsProps) {
  const { place } = usePanel();
  const folderChooser = useRef<HTMLInputElement>(null);
  function add(input: HTMLInputElement) {
    addUploads(place, within(props.folder, chosenFiles(input.files)));
    input.value = "";
  }
  return (
    <>
      {props.canWrite && (
        <>
          <input
            ref={props.chooser}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={(event) => add(event.currentTarget)}
          />
          <input
            ref={folderChooser}
            type="file"
            hidden
            aria-label="Folder to upload"
            onChange={(event) => add(event.currentTarget)}
            {...{ webkitdirectory: "" }}
          />
          <Button.Group>
            <Button
              size="xs"
              px={10}
              leftSection={<IconUpload size={15} />}
              onClick={() => props.chooser.current?.click()}
            >
              Upload
            </Button>
            <Menu position="bottom-end">
              <Menu.Target>
                <ActionIcon size={30} variant="filled" aria-label="More ways to upload" className="split-end">
                  <IconChevronDown size={14} />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => props.chooser.current?.click()}>Upload files</Menu.Item>
                <Menu.Item onClick={() => folderChooser.current?.click()}>Upload a folder</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </Button.Group>
          <Button
            size="xs"
            px={10}
            variant="default"
            leftSection={<IconFolderPlus size={15} />}
            onClick={props.onCreateFolder}
          >
            Create folder
          </Button>
        </>
      )}
      <Button
        size="xs"
        px={10}
        variant="default"
        leftSection={<IconDownload size={15} />}
        disabled={!props.hasChosen}
        onClick={props.onDownload}
      >
        Download
      </Button>
      {props.canDelete && (
        <Button
          size="xs"
          px={10}
          variant="default"
          leftSection={<IconTrash size={15} />}
          disabled={!props.hasChosen}
          onClick={props.onDelete}
        >
          Delete
        </Button>
      )}
    </>
  );
}
