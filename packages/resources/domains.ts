import { isIP } from 'node:net'

/** A domain in a list: no scheme, port, path, query, user or space. Brackets: an IPv6 address as in URLs. */
const NAME = /^(?:[^\s/:@?#[\]\\*%]+|\[[0-9A-Fa-f:.]+\])$/

/** Longest host name of DNS, in characters. */
const MAX_NAME = 253

/**
 * Returns whether a text is a domain pattern (`Agent.spec.web`, `web.allowedDomains`): `example.com` covers the host and everything below it,
 * `*.example.com` only what is below, `*` everything; an IP address covers itself.
 */
export function isDomain(text: string): boolean {
  return text === '*' || nameOf(text.startsWith('*.') ? text.slice(2) : text) !== null
}

/** Matches hosts against a list of domains. */
export interface DomainSet {
  /** Whether it names anything. */
  readonly isEmpty: boolean
  /** `host` as a URL has it: in lower case, without a port; names in their ASCII form. */
  has(host: string): boolean
}

/** Builds the set. Invalid domains match nothing: callers check them with `isDomain`. */
export function domainSet(domains: readonly string[]): DomainSet {
  const hosts = new Set<string>()
  const parents = new Set<string>()
  for (const domain of domains) {
    const below = domain.startsWith('*.')
    const name = nameOf(below ? domain.slice(2) : domain)
    if (name === null) continue
    if (!below) hosts.add(name)
    if (!isAddress(name)) parents.add(name)
  }
  const every = domains.includes('*')
  return {
    isEmpty: domains.length === 0,
    has: (host) => every || hosts.has(bare(host)) || isBelow(bare(host), parents),
  }
}

/** Looks up each parent of a host: the cost depends on the dots in the name, not on the length of the list. */
function isBelow(host: string, parents: ReadonlySet<string>): boolean {
  if (parents.size === 0 || isAddress(host)) return false
  for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
    if (parents.has(host.slice(dot + 1))) return true
  }
  return false
}

/** A trailing dot (the DNS root) does not change the target of a name. */
function bare(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host
}

/** Returns the host as in a URL; null when it is invalid. */
function nameOf(text: string): string | null {
  const written = isIP(text) === 6 ? `[${text}]` : text
  if (!NAME.test(written) || written.length > MAX_NAME) return null
  const url = URL.parse(`http://${written}/`)
  return url === null || url.hostname === '' ? null : bare(url.hostname)
}

/** Nothing is below an address. */
function isAddress(host: string): boolean {
  return host.startsWith('[') || isIP(host) !== 0
}
