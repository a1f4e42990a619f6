// Back and forth through the versions that changed this stream; the newest one is now.
import { ActionIcon, Group, Tooltip } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { historyQuery } from "@/api/queries";
import { makerText } from "@/history/maker";
import { usePanel } from "@/navigation/panel";
import { agoText } from "@/parts/formats";
import { useNow } from "@/parts/now";
import { steps } from "./steps";

export function AsOfStepper({ stream }: { stream: string }) {
  const { place, version, go } = usePanel();
  const now = useNow();
  const history = useInfiniteQuery(historyQuery(place, { stream }));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = history;
  const versions = useMemo(() => history.data?.pages.flatMap((page) => page.versions) ?? [], [history.data]);
  const step = steps(
    versions.map((one) => one.version),
    version,
  );

  // Where the version that is shown lies before what is loaded, the step back is not known yet.
  useEffect(() => {
    if (step.earlier === undefined && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [step.earlier, hasNextPage, isFetchingNextPage, fetchNextPage]);

  if (versions.length === 0) return null;
  const shown = versions.find((one) => one.version === step.current);
  const name = version === undefined ? "Now" : shown ? agoText(shown.timestamp, now) : `Version ${version}`;
  return (
    <Group gap={2} wrap="nowrap" role="group" aria-label={`${stream} as of`}>
      <Step
        label="Previous version"
        to={step.earlier}
        onGo={() => go({ v: step.earlier })}
        icon={<IconChevronLeft size={15} />}
      />
      <Tooltip label={shown ? `Version ${shown.version}: ${shown.message || makerText(shown)}` : name}>
        <span className="as-of">{name}</span>
      </Tooltip>
      <Step
        label="Next version"
        to={step.later}
        onGo={() => go({ v: step.later === "now" ? undefined : step.later })}
        icon={<IconChevronRight size={15} />}
      />
    </Group>
  );
}

interface StepProps {
  label: string;
  to: number | "now" | undefined;
  onGo: () => void;
  icon: React.ReactNode;
}

function Step({ label, to, onGo, icon }: StepProps) {
  return (
    <ActionIcon size="sm" variant="default" aria-label={label} disabled={to === undefined} onClick={onGo}>
      {icon}
    </ActionIcon>
  );
}
