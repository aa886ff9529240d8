import { readBody, readJsonObject } from '@plat/core'
import { CommandError } from './output.ts'
import { unreachableReason } from './unreachable.ts'

/** Largest response of the broker, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024

/** The part of the mint request that the CLI uses (docs/spec/broker-api.md). */
export interface MintRequest {
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string
  readonly scopes: readonly string[]
  readonly tier: string
  readonly ttlSeconds: number
}

/** The mint response: the session token and its expiry (RFC 3339). */
export interface Minted {
  readonly token: string
  readonly expiresAt: string
  readonly spiffeId: string
  readonly jti: string
}

/**
 * Mints a session token at `POST /v1/token` (docs/spec/broker-api.md).
 * @throws CommandError with the broker's message, or with how to start it if it does not respond.
 */
export async function mint(identityURL: string, brokerToken: string, request: MintRequest): Promise<Minted> {
  if (identityURL === '' || brokerToken === '')
    throw new CommandError(
      'the identity broker is not known; set PLAT_IDENTITY_URL and PLAT_BROKER_TOKEN, or use a context that has both',
    )
  const response = await fetch(`${identityURL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${brokerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  }).catch(() => {
    throw new CommandError(
      `the identity broker at ${identityURL} ${unreachableReason(identityURL)}; start it with plat up`,
    )
  })
  const bytes = await readBody(response.body, MAX_RESPONSE_BYTES).catch(() => null)
  const answer = bytes === null ? null : readJsonObject(bytes)
  if (response.ok && isMinted(answer)) return answer
  const next = response.status === 401 ? '; commands use the token of .plat/env: start plat up again if it changed' : ''
  throw new CommandError(`the identity broker refused: ${brokerError(answer) ?? `HTTP ${response.status}`}${next}`)
}

function isMinted(answer: unknown): answer is Minted {
  return (
    typeof answer === 'object' &&
    answer !== null &&
    'token' in answer &&
    typeof answer.token === 'string' &&
    'expiresAt' in answer &&
    typeof answer.expiresAt === 'string' &&
    'spiffeId' in answer &&
    typeof answer.spiffeId === 'string' &&
    'jti' in answer &&
    typeof answer.jti === 'string'
  )
}

function brokerError(answer: unknown): string | null {
  return typeof answer === 'object' && answer !== null && 'error' in answer ? String(answer.error) : null
}
