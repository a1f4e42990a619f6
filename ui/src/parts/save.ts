/** Has the browser save what is at an address, under the name that the service gives it. */
export function save(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
