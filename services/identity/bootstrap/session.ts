import { type Clock, parseDuration } from '@plat/core'
import { OAuthError, RefusalError } from '@plat/http/endpoints'
import { member, textOf } from '@plat/kubernetes'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { decodeMintRequest, type MintRequest } from '../mint/request.ts'
import type { Chain } from './chain.ts'
import { type KubernetesObject, kinds, readObject, watched } from './objects.ts'
import { denied, gone, NotReadyError } from './refusals.ts'

/** A session that is ready for its pod. */
export interface ReadySession {
  /** Content of its token. `ttlSeconds` is the remaining time of the session; 0 without a limit. */
  readonly request: MintRequest
  /** Its TrustTier wants attestation evidence: no token here. */
  readonly attested: boolean
  /** When the session ends, in milliseconds since the epoch; null when nothing limits it. */
  readonly endsAt: number | null
  readonly agent: KubernetesObject
}

/** Reads what the session of a chain is and may do. Throws the contract's refusals. */
export async function readSession(
  api: ClusterApi,
  {
    clock,
    namespace,
    chain: { session, sandbox },
  }: { readonly clock: Clock; readonly namespace: string; readonly chain: Chain },
): Promise<ReadySession> {
  const endsAt = endOf(session)
  refuseUnlessRunning(session, endsAt !== null && endsAt <= clock.now())
  refuseOtherSandbox(session, sandbox)
  const notPrepared = (what: string) => new NotReadyError('not_prepared', what, watched(session))
  const agent = await readObject(api, kinds.agent, namespace, textOf(session.spec, 'agentRef'))
  if (agent === null) throw notPrepared('the Agent of the session does not exist yet')
  const tierName = textOf(agent.spec, 'tier')
  // The requirements of a tier decide whether a token is issued: without the tier, none is.
  const tier = await readObject(api, kinds.tier, null, tierName)
  if (tier === null) throw notPrepared('the TrustTier of the session does not exist yet')
  if (member(session.spec, 'fork').inheritTaints === true && !Array.isArray(session.status.inheritedTaints)) {
    throw notPrepared("the parent's taints are not recorded yet")
  }
  const request = requestOf(session, {
    namespace,
    tier: tierName,
    leftMs: endsAt === null ? null : endsAt - clock.now(),
  })
  return { request, attested: tier.spec.attested === true, endsAt, agent }
}

const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed', 'Expired', 'Cancelled'])

/** The phases of a session, in the contract's refusals. An unknown phase is none that may run. */
function refuseUnlessRunning(session: KubernetesObject, expired: boolean): void {
  const phase = textOf(session.status, 'phase')
  if (phase === 'Revoked') throw new OAuthError(403, 'session_revoked', 'the session is revoked')
  if (ENDED.has(phase)) throw gone(`the session is ${phase.toLowerCase()}`)
  if (expired) throw gone('the session has expired')
  if (phase === 'Suspended' || session.spec.suspend === true) throw suspended()
  if (phase !== 'Running') throw new NotReadyError('not_prepared', 'the session is not running yet', watched(session))
}

export function suspended(): OAuthError {
  return new OAuthError(409, 'session_suspended', 'the session is suspended')
}

function refuseOtherSandbox(session: KubernetesObject, sandbox: KubernetesObject): void {
  const ref = member(session.status, 'sandboxRef')
  if (textOf(ref, 'name') === '' || textOf(ref, 'uid') === '') {
    throw new NotReadyError('not_prepared', 'the session has not recorded its Sandbox yet', watched(session))
  }
  if (ref.name !== sandbox.name || ref.uid !== sandbox.uid) throw denied('the session has another Sandbox')
}

/** The earlier one of the recorded end, and `ttl` after the start. A time that cannot be read ends the session. */
function endOf({ spec, status, metadata }: KubernetesObject): number | null {
  const ends: number[] = []
  if ('expiresAt' in status) ends.push(timeOf(status.expiresAt))
  if ('ttl' in spec)
    ends.push(timeOf(status.startedAt ?? metadata.creationTimestamp) + (parseDuration(textOf(spec, 'ttl')) ?? 0))
  return ends.length === 0 ? null : Math.min(...ends)
}

function timeOf(value: unknown): number {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? 0 : time
}

/** The session in the words of a mint request, so that the same rules hold for both. */
function requestOf(
  { name, spec, status }: KubernetesObject,
  { namespace, tier, leftMs }: { readonly namespace: string; readonly tier: string; readonly leftMs: number | null },
): MintRequest {
  const fork = member(spec, 'fork')
  const body = {
    namespace,
    agent: spec.agentRef,
    session: name,
    user: spec.user,
    groups: spec.groups,
    principalVerified: spec.principalVerified,
    // Scopes that the operator resolved for the Agent, when the session names none.
    scopes: spec.scopes ?? status.scopes,
    tier,
    parentSession: fork.parent,
    forkRoot: fork.root,
    inheritedTaints: fork.inheritTaints === true ? status.inheritedTaints : undefined,
    forkedFrom: status.forkedFrom,
    // A session that ends within this second has nothing left: 0 would mean the default.
    ttlSeconds: leftMs === null ? 0 : Math.max(1, Math.floor(leftMs / 1000)),
  }
  try {
    return decodeMintRequest(Buffer.from(JSON.stringify(body)))
  } catch (error) {
    if (error instanceof RefusalError) throw denied(`the session cannot have a token: ${error.message}`)
    throw error
  }
}
