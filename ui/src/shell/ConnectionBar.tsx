// Says that the service cannot be reached, and how old what is shown is; asks again until it answers.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { whoQuery } from "@/api/queries";
import { useLostSince } from "@/events/connection";
import { Moment } from "@/parts/Moment";

const AGAIN_MS = 3_000;

export function ConnectionBar() {
  const lostSince = useLostSince();
  const client = useQueryClient();
  const isLost = lostSince !== undefined;
  useEffect(() => {
    if (!isLost) return;
    const timer = setInterval(() => {
      client.fetchQuery({ ...whoQuery, staleTime: 0 }).then(
        () => client.invalidateQueries(),
        () => {}, // it is asked again
      );
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [isLost, client]);
  return (
    <div role="status" className="connection" hidden={!isLost}>
      {lostSince !== undefined && (
        <>
          The service cannot be reached. Last response: <Moment at={new Date(lostSince).toISOString()} />.
          Retrying.
        </>
      )}
    </div>
  );
}
