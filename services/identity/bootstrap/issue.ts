import type { Clock, Ids } from '@plat/core'
import { rfc3339 } from '@plat/core'
import { OAuthError, RefusalError } from '@plat/http/endpoints'
import { textOf } from '@plat/kubernetes'
import type { IdentitySettings } from '../flags.ts'
import type { Tenancy } from '../keys/tenancy.ts'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import type { BoundPod } from '../kubernetes/pod.ts'
import { substrateOf } from '../kubernetes/pod.ts'
import { mint, nameOf } from '../mint/mint.ts'
import type { AuditParts } from '../serve/audit.ts'
import { recordIssued } from '../serve/audit.ts'
import type { BrokerPools } from '../serve/pools.ts'
import type { Revocations } from '../sessions/revocations.ts'
import { bindPod } from './bind.ts'
import { followPod } from './chain.ts'
import { variablesOf } from './environment.ts'
import type { KubernetesObject } from './objects.ts'
import { denied, unavailable } from './refusals.ts'
import type { ReadySession } from './session.ts'
import { readSession, suspended } from './session.ts'

/** Maximum number of conflicting writes of a session before a request fails. */
const MAX_TRIES = 5

export interface BootstrapParts extends AuditParts {
  readonly settings: IdentitySettings
  readonly api: ClusterApi
  /** Isolation by runtime class. */
  readonly isolation: ReadonlyMap<string, string>
  readonly tenancy: Tenancy
  readonly revocations: Revocations
  readonly pools: BrokerPools
  readonly clock: Clock
  readonly ids: Ids
}

/** docs/spec/broker-api.md, `POST /v1/bootstrap`, response 200. `token` and `jti` are absent for attested sessions. */
interface BootstrapResponse {
  readonly namespace: string
  readonly session: string
  readonly agent: string
  readonly attested: boolean
  readonly token?: string
  /** End of the token, RFC 3339; for attested sessions that of the session, absent when it has none. */
  readonly expiresAt?: string
  readonly spiffeId: string
  readonly jti?: string
  readonly env: Readonly<Record<string, string>>
}

/** Follows the pod to its session, binds it and issues; repeats when the session was modified meanwhile. */
export async function serve(parts: BootstrapParts, bound: BoundPod): Promise<BootstrapResponse> {
  for (let left = MAX_TRIES; left > 0; left--) {
    const answer = await tryToServe(parts, bound)
    if (answer !== null) return answer
  }
  throw unavailable('the session changes all the time')
}

/** Returns null when the session was modified meanwhile. */
async function tryToServe(parts: BootstrapParts, bound: BoundPod): Promise<BootstrapResponse | null> {
  const { api, clock, isolation, settings } = parts
  const chain = await followPod(api, bound)
  const ready = await readSession(api, { clock, namespace: bound.namespace, chain })
  const spiffeId = await asOAuth(() => nameOf(settings.trustDomain, ready.request))
  refuseRevoked(parts, ready, chain.session)
  const variables = await variablesOf({ api, namespace: bound.namespace, chain, agent: ready.agent })
  const substrate = substrateOf(bound, chain.pod, isolation)
  const minted = ready.attested ? null : await asOAuth(() => mint(parts, ready.request, substrate))
  const jti = minted === null ? {} : { jti: minted.jti }
  // The session is recorded first: a token that is not recorded on its session is never issued.
  if (!(await bindPod(api, chain.session, bound, { spiffeId, ...jti }))) return null
  const end = minted?.expiresAt ?? (ready.endsAt === null ? null : rfc3339(ready.endsAt))
  const facts = { ...jti, ...(end !== null && { expiresAt: end }) }
  const { user, scopes } = ready.request
  await recordIssued(parts, 'bootstrap', { ...facts, sub: spiffeId, user, scope: scopes.join(' ') })
  return {
    ...nameIn(ready),
    attested: ready.attested,
    ...(minted !== null && { token: minted.token }),
    ...facts,
    spiffeId,
    env: environmentOf(settings, ready, variables),
  }
}

function nameIn({
  request: { namespace, session, agent },
}: ReadySession): Pick<BootstrapResponse, 'namespace' | 'session' | 'agent'> {
  return { namespace, session, agent }
}

/** Variables of the Agent and the session, overridden by those of the broker. */
function environmentOf(
  { bootstrapGatewayUrl: gateway }: IdentitySettings,
  ready: ReadySession,
  variables: Readonly<Record<string, string>>,
) {
  const { namespace, agent, session: name } = ready.request
  return {
    ...variables,
    ...modelEndpointOf(ready, gateway),
    PLAT_GATEWAY_URL: gateway,
    PLAT_NAMESPACE: namespace,
    PLAT_AGENT: agent,
    PLAT_SESSION: name,
  }
}

/** The base URL of the Agent's private model route, else of all routes that it may use. */
function modelEndpointOf({ request: { namespace, agent: name }, agent: { spec } }: ReadySession, gateway: string) {
  if ('model' in spec) return { PLAT_MODEL_ENDPOINT: `${gateway}/llm/${namespace}.${name}/v1` }
  const { modelRoutes } = spec
  return Array.isArray(modelRoutes) && modelRoutes.length > 0 ? { PLAT_MODEL_ENDPOINT: `${gateway}/llm/v1` } : {}
}

/** Subjects on the revocations list get no session, and no subject does while the list cannot be read. */
function refuseRevoked(
  { revocations, tenancy, settings }: BootstrapParts,
  { request }: ReadySession,
  { status }: KubernetesObject,
): void {
  const { namespace, agent, session, user, parentSession, forkRoot, forkedFrom } = request
  const { issuer, trustDomain } = settings
  // The previous token, if any: a session whose token was revoked gets no other one.
  const subject = {
    namespace,
    agent,
    session,
    user,
    issuer,
    jti: textOf(status, 'jti'),
    parentJti: null,
    delegatorJti: null,
    delegationJtis: [],
    trustDomain,
    actors: [],
    lineage: forkedFrom.map((name) => {
      const [parentAgent = '', parent = ''] = name.split('/')
      return { trustDomain, namespace, agent: parentAgent, session: parent }
    }),
    parentSession,
    forkRoot,
  }
  const verdict = revocations.judge(subject, tenancy.tenantOf(namespace))
  if (verdict === 'revoked') throw new OAuthError(403, 'session_revoked', 'the session is revoked')
  if (verdict === 'suspended') throw suspended()
  if (verdict === 'unavailable') throw unavailable('the list of revocations cannot be read')
}

/** Converts a mint's refusals to the errors of this endpoint. */
async function asOAuth<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error
    throw error.status === 503
      ? unavailable(error.message)
      : denied(`the session cannot have a token: ${error.message}`)
  }
}
