import { hash } from 'node:crypto'
import { canonicalJson, isObject, type JsonObject, losslessSteps, member, runInSlices } from '@plat/core'
import type { Call, Identity } from '../../../call/index.ts'
import { header } from '../../wire/message.ts'
import type { ModelBody } from '../request.ts'

/** Callers that share the stored responses of a route. */
export type CacheScope = 'session' | 'user' | 'agent' | 'route'

/** A call whose response may be stored. */
export type CacheableCall = Call<'identity' | 'target'>

/** Uses of the cache that a caller permits. */
export interface CacheUse {
  /** A stored response may be sent. */
  readonly reads: boolean
  /** The response may be stored. */
  readonly stores: boolean
}

const ALL: CacheUse = { reads: true, stores: true }
const REFRESH: CacheUse = { reads: false, stores: true }
const NONE: CacheUse = { reads: false, stores: false }

/** Returns what the headers of a request permit: `x-plat-cache`, and `cache-control` as in RFC 9111, section 5.2.1. */
export function useOf({ headers }: Call['wire']): CacheUse {
  const own = header(headers, 'x-plat-cache')
  if (own !== null) return own === 'refresh' ? REFRESH : own === 'on' ? ALL : NONE
  const directives = (header(headers, 'cache-control') ?? '').toLowerCase().split(',')
  const has = (name: string) => directives.some((one) => one.trim() === name)
  if (has('no-store')) return NONE
  return has('no-cache') || has('max-age=0') ? REFRESH : ALL
}

/** Members of a request that refer to what a provider stores, or make it store something. */
const STATE = ['previous_response_id', 'conversation', 'background', 'container', 'cachedContent'] as const

/**
 * Returns whether the response to a request depends on the request alone: not on content that the provider adds, such as search results, and
 * not on what it stores.
 */
export function isSelfContained({ method, facts: { target } }: CacheableCall, { value, dialect }: ModelBody): boolean {
  if (dialect.media !== undefined) return false
  if (target.labels.taints.length > 0) return false
  if (STATE.some((name) => isStated(value, name))) return false
  if (method === 'responses' && isStated(value, 'prompt')) return false
  // `responses` are stored unless the request says otherwise.
  if (method === 'responses' ? value.store !== false : value.store === true) return false
  const { input } = value
  return !(Array.isArray(input) && input.some((item) => member(item, 'type') === 'item_reference'))
}

function isStated(value: JsonObject, name: string): boolean {
  return value[name] !== undefined && value[name] !== null && value[name] !== false
}

/**
 * Returns the digest of everything that the response of an endpoint depends on: the canonical form of the request as forwarded, after
 * redaction, its headers, the callers that share the response, and the class and labels that it has. Null if the request has no canonical form.
 */
export async function digestOf(call: CacheableCall, body: ModelBody, scope: CacheScope): Promise<string | null> {
  const { identity, target } = call.facts
  const headers = body.dialect.headers.map((name) => header(call.wire.headers, name))
  const parts = [
    scope,
    callersOf(identity, scope),
    target.key,
    target.dataClass,
    target.labels,
    call.method,
    call.name,
    body.request.stream,
    headers,
  ]
  const request = canonical(await runInSlices(losslessSteps(body.bytes)))
  return request === null ? null : hash('sha256', `${JSON.stringify(parts)}\n${request}`, 'hex')
}

/** The properties of a caller in which all callers that share a response are equal. Tenants and tiers share none. */
function callersOf(identity: Identity, scope: CacheScope): readonly (string | null)[] {
  const { tenant, tier, trustDomain, issuer, namespace, agent, user, session } = identity
  const agents = [tenant, tier, trustDomain, issuer, namespace, agent]
  if (scope === 'route') return [tenant, tier]
  if (scope === 'agent') return agents
  return scope === 'user' ? [...agents, user] : [...agents, user, session]
}

function canonical(value: unknown): string | null {
  try {
    return isObject(value) ? canonicalJson(value) : null
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}
