import { type Clock, systemClock } from '@plat/core'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'

/** Issues transaction tokens as a gateway does for a call between agents. Its key is made at run time. */
export interface TestTransactions {
  readonly signer: LocalSigner
  /** The public key as a JWK set. */
  readonly jwks: { readonly keys: readonly object[] }
  /** A token of a call of the agent `planner` to the agent `helper`; a change makes it another, or a wrong one. */
  token(change?: Readonly<Record<string, unknown>>, header?: object): string
}

const LIFETIME_SECONDS = 60

export function testTransactions({ clock = systemClock }: { clock?: Clock } = {}): TestTransactions {
  const signer = ephemeralSigner()
  let count = 0
  return {
    signer,
    jwks: { keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig', alg: 'EdDSA' }] },
    token(change = {}, header = {}) {
      count++
      const now = Math.floor(clock.now() / 1000)
      return signJws(
        signer,
        { typ: 'txntoken+jwt', ...header },
        {
          aud: 'plat.local',
          iat: now,
          exp: now + LIFETIME_SECONDS,
          txn: `txn-${count}`,
          sub: 'spiffe://plat.local/ns/default/agent/planner/session/p1',
          scope: 'agents:helper',
          req_wl: 'plat-gateway',
          act: { sub: 'user:ada' },
          tctx: { jti: 'jti-of-planner', target: 'default/helper', call: 'call-1' },
          ...change,
        },
      )
    },
  }
}
