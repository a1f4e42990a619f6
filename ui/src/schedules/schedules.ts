// What of schedules is read from the service, and changed there.
import { infiniteQueryOptions } from "@tanstack/react-query";
import { address, call, get } from "@/api/client";
import { type Place, tenantAddress } from "@/api/place";
import type { Job, NewSchedule, Schedule, SchedulePage } from "@/api/types";

const AGAIN_MS = 30_000;

export function schedulesKey(environment: string): readonly string[] {
  return ["schedules", environment];
}

export function schedulesQuery(environment: string) {
  return infiniteQueryOptions({
    queryKey: schedulesKey(environment),
    queryFn: ({ signal, pageParam }) =>
      get<SchedulePage>(
        address`/environments/${environment}/schedules`,
        { limit: 200, cursor: pageParam },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: AGAIN_MS,
  });
}

export function createSchedule(place: Place, order: NewSchedule): Promise<Schedule> {
  return call("POST", `${tenantAddress(place)}/schedules`, { body: order });
}

export function enableSchedule(place: Place, name: string, enabled: boolean): Promise<Schedule> {
  return call("PATCH", scheduleAddress(place, name), { body: { enabled } });
}

export function deleteSchedule(place: Place, name: string): Promise<void> {
  return call("DELETE", scheduleAddress(place, name));
}

export function runSchedule(place: Place, name: string): Promise<Job> {
  return call("POST", `${scheduleAddress(place, name)}/runs`);
}

function scheduleAddress(place: Place, name: string): string {
  return `${tenantAddress(place)}/schedules/${encodeURIComponent(name)}`;
}
