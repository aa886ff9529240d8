import { type Clock, readJsonObject, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import { textOf } from '@plat/kubernetes'
import type { Resource } from '@plat/resources'
import { type OperatorRegistry, ReconcileError } from '../controllers/controller.ts'
import type { Plan } from './life/admission.ts'

/** Lifetime of the tokens that are minted, in seconds, where the session does not end sooner. */
export const TOKEN_SECONDS = 900
/** Deadline of one mint, in milliseconds. */
const MINT_MS = 3_000
/** Largest answer of the broker, in bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024

export interface Minted {
  readonly token: string
  readonly spiffeId: string
  readonly jti: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

export interface MinterOptions {
  /** URL of the broker, without a slash at the end. */
  readonly url: string
  readonly brokerToken: string
  /** PEM of an authority that the broker's certificate is of, beside the system's; absent: none. */
  readonly caPEM?: string
  readonly dialer: Dialer
  readonly registry: OperatorRegistry
  readonly clock: Clock
}

/** Mints the tokens of sessions with a dedicated pod (docs/spec/broker-api.md, `POST /v1/token`). */
export class Minter {
  readonly #options: MinterOptions

  constructor(options: MinterOptions) {
    this.#options = options
  }

  /** `endsAt`: of the session, in milliseconds since the epoch. Throws a `ReconcileError` without the token in it. */
  async mint(session: Resource<'AgentSession'>, plan: Plan, endsAt: number | null): Promise<Minted> {
    const { url, brokerToken, caPEM, dialer, registry, clock } = this.#options
    const begun = clock.monotonic()
    const left = endsAt === null ? TOKEN_SECONDS : Math.max(1, Math.floor((endsAt - clock.now()) / 1000))
    const answer = await dialer
      .fetchBytes(`${url}/v1/token`, 'jwks', {
        ...(caPEM !== undefined && { caPEM }),
        method: 'POST',
        headers: { authorization: `Bearer ${brokerToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...tokenContentOf(session, plan), ttlSeconds: Math.min(TOKEN_SECONDS, left) }),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: MINT_MS,
      })
      .catch((error: unknown) => {
        throw new ReconcileError('BrokerUnreachable', `the identity broker does not respond: ${reasonOf(error)}`)
      })
    const body = readJsonObject(answer.bytes) ?? {}
    if (answer.status !== 200) {
      throw new ReconcileError(
        'MintRefused',
        `the identity broker refuses with ${answer.status}: ${textOf(body, 'error')}`,
      )
    }
    const [token, spiffeId, jti] = [textOf(body, 'token'), textOf(body, 'spiffeId'), textOf(body, 'jti')]
    const expiresAt = Date.parse(textOf(body, 'expiresAt'))
    if (token === '' || jti === '' || Number.isNaN(expiresAt)) {
      throw new ReconcileError('MintRefused', 'the response of the identity broker is not a token')
    }
    registry.histogram('plat_token_mint_seconds').observe({}, (clock.monotonic() - begun) / 1000)
    return { token, spiffeId, jti, expiresAt }
  }
}

/** Content of the tokens of a session, as members of `POST /v1/token`. */
export function tokenContentOf(
  { metadata, spec, status }: Resource<'AgentSession'>,
  { scopes, tier, inheritedTaints }: Plan,
): object {
  const { user, groups, principalVerified, fork } = spec
  return {
    namespace: metadata.namespace,
    agent: spec.agentRef,
    session: metadata.name,
    scopes,
    tier: tier.metadata.name,
    ...(user !== undefined && { user }),
    ...(groups !== undefined && { groups }),
    ...(principalVerified !== undefined && { principalVerified }),
    ...(fork?.parent !== undefined && { parentSession: fork.parent }),
    ...(fork?.root !== undefined && { forkRoot: fork.root }),
    ...(status?.forkedFrom !== undefined && { forkedFrom: status.forkedFrom }),
    ...(fork?.inheritTaints === true && { inheritedTaints: status?.inheritedTaints ?? inheritedTaints }),
  }
}
