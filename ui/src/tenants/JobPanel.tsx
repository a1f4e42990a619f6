// The panel of a tenant over the list of jobs.
import { TenantPanel } from "./TenantPanel";

export function JobPanel() {
  return <TenantPanel list="jobs" />;
}
