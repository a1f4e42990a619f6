// The History tab: the tenant's versions as a timeline, or the difference of two of them.
import { usePanel } from "@/navigation/panel";
import { DifferenceView } from "./DifferenceView";
import { Timeline } from "./Timeline";
import "./history.css";

export default function HistoryTab() {
  const { search } = usePanel();
  if (search.before !== undefined && search.after !== undefined)
    return <DifferenceView before={search.before} after={search.after} />;
  return <Timeline />;
}
