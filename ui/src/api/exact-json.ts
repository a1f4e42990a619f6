// JSON without loss: an integer that JavaScript cannot hold exactly becomes the text it was written as.

type Reviver = (this: unknown, name: string, value: unknown, context?: { source?: string }) => unknown;

const exactly: Reviver = (_name, value, context) => {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  // Browsers that do not give the source yet show the nearest number, as they always did.
  return context?.source ?? value;
};

export function exactJson(text: string): unknown {
  return JSON.parse(text, exactly as (this: unknown, name: string, value: unknown) => unknown);
}
