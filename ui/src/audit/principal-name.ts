// A person or key of the audit by its name, which people know it by; its id says which of two namesakes (pure).

/** "person:1f0c ada" as "ada", "key:9a2e etl" as "etl (key)"; who has no name keeps the id. */
export function principalName(principal: string): string {
  const found = /^(person|key):\S+ (.+)$/.exec(principal);
  if (!found) return principal;
  return found[1] === "key" ? `${found[2]} (key)` : (found[2] ?? principal);
}
