// The bar that marks a panel which shows the past: which moment, that nothing can be changed, and the way back.
import { Button } from "@mantine/core";
import { IconClock } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { overviewQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { exactText } from "@/parts/formats";

export function PastBar() {
  const { place, version, go } = usePanel();
  const { data } = useQuery({ ...overviewQuery(place, version), enabled: version !== undefined });
  if (version === undefined) return null;
  return (
    <div className="past-bar" role="status">
      <IconClock size={16} />
      <span>
        As of {data?.timestamp ? `${exactText(data.timestamp)} (version ${version})` : `version ${version}`},
        read only
      </span>
      <Button size="compact-xs" variant="default" onClick={() => go({ v: undefined })}>
        Back to now
      </Button>
    </div>
  );
}
