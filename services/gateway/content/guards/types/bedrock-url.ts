/** `bedrock-runtime.eu-central-1.amazonaws.com` */
const REGION_IN_HOST = /^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./
/** `POST /guardrail/<id or ARN>/version/<version>/apply`. */
const APPLY_PATH = /\/guardrail\/[^/]+\/version\/[^/]+\/apply$/

/** Returns the region in a host name, or an empty string. */
export function regionIn(url: URL): string {
  return REGION_IN_HOST.exec(url.hostname)?.[1] ?? ''
}

/** Returns whether a URL is that of ApplyGuardrail. */
export function appliesGuardrail(url: URL): boolean {
  return APPLY_PATH.test(url.pathname)
}
