import { readSecret } from '@plat/config'
import { buildInfo, type Clock, type Ids } from '@plat/core'
import { type Listener, listen, mountProbes } from '@plat/http'
import { createRegistry } from '@plat/metrics'
import type { Log } from '@plat/process'
import { createVerifier } from '@plat/tokens'
import { defaultSettings, type IdentitySettings, settingProblems } from './flags.ts'
import { mountJwks } from './keys/jwks.ts'
import { createKeyRing } from './keys/ring.ts'
import { mintEndpoint } from './mint/mint.ts'
import { createBrokerGuard } from './serve/broker-guard.ts'
import { BODY_TIMEOUT_MS, endpointRoute } from './serve/endpoint.ts'
import { verifyEndpoint } from './verify/verify.ts'

/** How long requests in flight may take once the broker drains, in milliseconds. */
const DRAIN_MS = 10_000

/** Settings that are not named have their documented defaults. */
export interface StartIdentityOptions extends Partial<IdentitySettings> {
  /** `PLAT_BROKER_TOKEN` or `PLAT_BROKER_TOKEN_FILE`. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** A running broker. */
export interface Identity {
  /** `http://127.0.0.1:8081` */
  readonly url: string
  readonly port: number
  /** `/readyz` fails for `-shutdown-delay`, then requests in flight finish. */
  drain(): Promise<void>
  /** Ends at once. */
  close(): Promise<void>
}

/** Starts the identity broker (document 1). Rejects with one line naming the flag, variable or file that is wrong. */
export async function startIdentity(options: StartIdentityOptions): Promise<Identity> {
  const { env, clock, ids, log, ...given } = options
  const settings = { ...defaultSettings, ...given }
  const [problem] = settingProblems(settings)
  if (problem !== undefined) throw new Error(problem)
  const guard = createBrokerGuard(readSecret(env, 'PLAT_BROKER_TOKEN'))
  const ring = await createKeyRing({ settings, clock, log })
  const verifier = createVerifier({
    keys: ring.trusted,
    issuer: settings.issuer,
    audience: settings.audience,
    leewaySeconds: 0,
    trustDomain: settings.trustDomain,
    clock,
  })
  const build = buildInfo('identity')
  const registry = createRegistry([], { component: 'identity', build })
  let ready = true
  const listener = await listenOrClose(ring, () =>
    listen({
      address: settings.listen,
      clock,
      ids,
      log,
      limits: { requestMs: BODY_TIMEOUT_MS },
      raw: [
        endpointRoute({ guard, clock, log }, [
          mintEndpoint({ settings, signer: () => ring.signer(), clock, ids, log }),
          verifyEndpoint(verifier),
        ]),
      ],
      renderFault: (fault) => ({ error: fault.message }),
      api(app) {
        mountProbes(app, { ready: () => ready, build, metrics: () => registry.expose() })
        mountJwks(app, ring)
      },
    }),
  )
  log.info({ url: listener.url, kid: ring.signer().kid }, 'listening')
  return {
    url: listener.url,
    port: listener.port,
    async drain() {
      ready = false
      await new Promise<void>((resolve) => clock.after(settings.shutdownDelayMs, resolve))
      await listener.drain(DRAIN_MS)
      ring.close()
    },
    async close() {
      await listener.close()
      ring.close()
    },
  }
}

async function listenOrClose(ring: { close(): void }, start: () => Promise<Listener>): Promise<Listener> {
  try {
    return await start()
  } catch (error) {
    ring.close()
    throw error
  }
}
