import type { IncomingHttpHeaders } from 'node:http'
import { isLoopbackHost } from '@plat/http'

const NO_NAMES: ReadonlySet<string> = new Set()

/** Name of the session's cookie; with this prefix browsers accept it from this host only, over TLS or loopback, for all paths. */
const COOKIE = '__Host-plat-console'

/**
 * Returns the origin at which the console may be used for this request: that of `consoleURL`, or a loopback name. Null for any other Host, so that
 * a page whose name was pointed at this address (DNS rebinding) reaches nothing.
 */
export function originOf(host: string | undefined, isTls: boolean, consoleOrigin: string | null): string | null {
  if (host === undefined) return null
  const name = host.toLowerCase()
  if (consoleOrigin !== null && new URL(consoleOrigin).host === name) return consoleOrigin
  return isLoopbackHost(name, NO_NAMES) ? `${isTls ? 'https' : 'http'}://${name}` : null
}

/**
 * Whether a request comes from a page of this origin, by `Origin` and `Sec-Fetch-Site` (Fetch Metadata). Reads may also come from the address bar;
 * every other request must carry one of the two.
 */
export function isSameOrigin(headers: IncomingHttpHeaders, origin: string, isRead: boolean): boolean {
  const { origin: from, 'sec-fetch-site': site } = headers
  if (from !== undefined && from !== origin) return false
  if (site !== undefined && site !== 'same-origin' && !(isRead && site === 'none')) return false
  return isRead || from !== undefined || site !== undefined
}

/** Cookies are shared by the ports of a host: on loopback, the name contains the port, so that two gateways do not log each other out. */
export function cookieName(origin: string): string {
  const { hostname, port } = new URL(origin)
  return isLoopbackHost(hostname, NO_NAMES) ? `${COOKIE}-${port || 'default'}` : COOKIE
}

/** Returns the value of a cookie, or null. */
export function cookieIn(header: string | undefined, name: string): string | null {
  const found = header?.split(';').find((pair) => pair.trimStart().startsWith(`${name}=`))
  return found === undefined ? null : found.trim().slice(name.length + 1)
}

/** Returns `Set-Cookie`. `Lax` is for the redirect back from an identity provider; `maxAgeSeconds` 0 removes the cookie. */
export function cookieOf(name: string, value: string, maxAgeSeconds: number, sameSite: 'Strict' | 'Lax' = 'Strict') {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=${sameSite}`
}
