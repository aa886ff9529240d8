/** Session identity, as in its SPIFFE ID. */
export interface SessionName {
  readonly trustDomain: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
}

/** SPIFFE-ID specification, section 2: an ID is at most 2,048 bytes, its trust domain at most 255. */
const MAX_ID_LENGTH = 2048
const MAX_TRUST_DOMAIN_LENGTH = 255

const SEGMENT = /^[A-Za-z0-9._-]+$/
const TRUST_DOMAIN = /^[a-z0-9._-]+$/
const SESSION_ID = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/agent\/([^/]+)\/session\/([^/]+)$/

/** Returns whether the text is valid between two slashes of a SPIFFE ID: letters, digits, `.`, `_`, `-`, and neither `.` nor `..`. */
export function isSpiffeSegment(text: string): boolean {
  return text.length <= MAX_ID_LENGTH && SEGMENT.test(text) && text !== '.' && text !== '..'
}

/** Returns whether the text is a SPIFFE trust domain: lower-case letters, digits, `.`, `_`, `-`, at most 255. */
export function isTrustDomain(text: string): boolean {
  return text.length <= MAX_TRUST_DOMAIN_LENGTH && TRUST_DOMAIN.test(text)
}

/**
 * Returns `spiffe://<trustDomain>/ns/<namespace>/agent/<agent>/session/<session>` (docs/spec/broker-api.md, claim `sub`).
 * Throws TypeError naming the part that a SPIFFE ID cannot contain.
 */
export function sessionSpiffeId(name: SessionName): string {
  if (!isTrustDomain(name.trustDomain)) throw new TypeError('trustDomain is not a SPIFFE trust domain')
  for (const part of ['namespace', 'agent', 'session'] as const) {
    if (!isSpiffeSegment(name[part])) throw new TypeError(`${part} is not valid in a SPIFFE ID`)
  }
  const { trustDomain, namespace, agent, session } = name
  // A flat string, unlike the result of a template: `JSON.stringify`, which processes it several times, takes twice as long for composed strings.
  const id = ['spiffe:/', trustDomain, 'ns', namespace, 'agent', agent, 'session', session].join('/')
  if (id.length > MAX_ID_LENGTH) throw new TypeError(`a SPIFFE ID has at most ${MAX_ID_LENGTH} bytes`)
  return id
}

/** Returns the parts of a session's SPIFFE ID; null unless `sessionSpiffeId` would return exactly this text. */
export function parseSessionSpiffeId(text: string): SessionName | null {
  if (text.length > MAX_ID_LENGTH) return null
  const [, trustDomain, namespace, agent, session] = SESSION_ID.exec(text) ?? []
  if (trustDomain === undefined || namespace === undefined || agent === undefined || session === undefined) return null
  if (!isTrustDomain(trustDomain) || ![namespace, agent, session].every(isSpiffeSegment)) return null
  return { trustDomain, namespace, agent, session }
}
