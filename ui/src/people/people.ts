// What of people is read from the service, and changed there.
import { queryOptions } from "@tanstack/react-query";
import { address, call, get } from "@/api/client";
import type { Invitation, NewPerson, Person, PersonChange, PersonSession } from "@/api/types";

export const peopleQuery = queryOptions({
  queryKey: ["people"],
  queryFn: async ({ signal }) => (await get<{ people: Person[] }>(address`/people`, {}, signal)).people,
});

export function sessionsQuery(person: string) {
  return queryOptions({
    queryKey: ["people", person, "sessions"],
    queryFn: async ({ signal }) =>
      (await get<{ sessions: PersonSession[] }>(address`/people/${person}/sessions`, {}, signal)).sessions,
  });
}

export function invitePerson(order: NewPerson): Promise<Invitation> {
  return call("POST", address`/people`, { body: order });
}

/** A new invitation: the person sets a password with it, and the one of before ends. */
export function resetPassword(person: string): Promise<Invitation> {
  return call("POST", address`/people/${person}/invitation`);
}

export function changePerson(person: string, change: PersonChange): Promise<Person> {
  return call("PATCH", address`/people/${person}`, { body: change });
}

/** Ends one session, or all of them. */
export function endSessions(person: string, session?: string): Promise<void> {
  return call(
    "DELETE",
    session === undefined
      ? address`/people/${person}/sessions`
      : address`/people/${person}/sessions/${session}`,
  );
}
