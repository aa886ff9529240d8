import { withoutTrailingSlash } from '@plat/core'

/**
 * Normalizes an `htu` for comparison (RFC 9449, section 4.3, item 9; RFC 3986, sections 6.2.2 and 6.2.3): scheme and host in lower case, no default
 * port, percent-encoding in upper case and only where needed, no dot segments, an empty path as `/`, and neither query nor fragment. One trailing
 * slash is removed, because listeners serve both forms as one endpoint. Returns null for a URL that is not http or https.
 */
export function normalHtu(text: string): string | null {
  if (!/^https?:\/\//i.test(text) || text.length > MAX_HTU_CHARS || UNSAFE.test(text)) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.username !== '' || url.password !== '') return null
  return url.origin + withoutTrailingSlash(url.pathname).replace(/%[0-9a-f]{2}/gi, normalEscape)
}

/** Longest `htu` that is read, in characters. */
const MAX_HTU_CHARS = 2048
/** A URL in a header has none of these; the parser would drop, trim or convert them. */
const UNSAFE = /[^\x21-\x7e]|\\/

const UNRESERVED = /[A-Za-z0-9._~-]/

function normalEscape(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return UNRESERVED.test(character) ? character : encoded.toUpperCase()
}
