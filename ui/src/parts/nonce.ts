// The page's nonce: with it, and only with it, a style element may be added (see the service's asgi/console.py).
export function styleNonce(): string {
  return document.querySelector('meta[name="csp-nonce"]')?.getAttribute("content") ?? "";
}
