import { userInfo } from 'node:os'
import { systemClock } from '@plat/core'
import { fetchAgent, readAgent } from '../shared/agent.ts'
import { mint } from '../shared/broker.ts'
import { findGateway } from '../shared/gateway.ts'
import type { Format, Output } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'
import { readDuration } from '../shared/times.ts'

export interface TokenMintOptions {
  readonly dir?: string | undefined
  readonly agent: string
  readonly session: string
  readonly user?: string | undefined
  readonly scope: readonly string[]
  readonly ttl?: string | undefined
  readonly format: Format | 'token'
}

/** Tolerance of expiresAt for rounding to seconds and clock skew, in milliseconds. */
const CLOCKS_MS = 5000
/** Lifetime up to which the tolerance of gateways (`identity.leewaySeconds`, by default 30) is worth a note, in seconds. */
const SHORT_SECONDS = 60

/** Mints a session token for an agent of the running plat, with the scopes of the agent unless others are given. */
export async function tokenMint(options: TokenMintOptions, output: Output): Promise<number> {
  const { home, env } = await findGateway(options.dir)
  const agent = home === null ? await fetchAgent(env, options.agent) : await readAgent(home.dir, options.agent)
  const ttlSeconds = options.ttl === undefined ? null : Math.floor(readDuration(options.ttl, 'ttl') / 1000)
  const requestedAt = systemClock.now()
  const minted = await mint(env.PLAT_IDENTITY_URL, env.PLAT_BROKER_TOKEN, {
    namespace: agent.namespace,
    agent: agent.name,
    session: options.session,
    user: options.user ?? userInfo().username,
    scopes: options.scope.length > 0 ? options.scope : agent.scopes,
    tier: agent.tier,
    ttlSeconds: ttlSeconds ?? agent.maxTTLSeconds,
  })
  const { token, expiresAt, spiffeId, jti } = minted
  const shorterMs = ttlSeconds === null ? 0 : requestedAt + ttlSeconds * 1000 - Date.parse(expiresAt)
  if (shorterMs > CLOCKS_MS)
    output.err(`-ttl: ${options.ttl} exceeds the limit of the broker; the token expires sooner`)
  if (ttlSeconds !== null && ttlSeconds <= SHORT_SECONDS)
    output.err('-ttl: gateways accept a token for identity.leewaySeconds longer (30 s by default), as clocks differ')
  if (options.format === 'token') output.out(token)
  else printObject(output, options.format, { token, expiresAt, spiffeId, jti })
  return 0
}
