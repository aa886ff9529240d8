import { readFile } from 'node:fs/promises'
import { readPublicKeys } from '@plat/keys'
import type { Proof, ProofCheck, ProofContext, ProofVerdict } from './check.ts'
import { readAssertion, verifyAssertion } from './jwt/assertion.ts'
import type { AssertionKey } from './jwt/keys.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop } from './parts/verdict.ts'

/** A statement is made for one mint. Seconds. */
const MAX_LIFETIME_SECONDS = 300
const ALGORITHMS: ReadonlySet<string> = new Set(['EdDSA', 'ES256'])
const TYPES: ReadonlySet<string> = new Set(['sandbox+jwt'])
/** Optional statements of a driver about its sandbox: one line each. */
const STATED = ['isolation', 'egress', 'digest', 'platform', 'workload', 'jurisdiction'] as const
const LINE = /^[^\p{Cc}]{1,256}$/u

export interface SandboxSettings {
  /** Name of the driver: the check's name, and the `iss` of its statements. */
  readonly driver: string
  /** Path of its public keys: PEM or JWKS, each Ed25519 or P-256. */
  readonly keys: string
  readonly audience: string
}

/**
 * Proof by the statement of a sandbox driver: a JWT of `typ` `sandbox+jwt` in `token`, with `iss` the driver, `aud` ours,
 * `sub` the sandbox, `nonce`, `exp` at most five minutes ahead, the session in `plat_ns`, `plat_agent`, `plat_session`, and what
 * the driver states of the sandbox.
 */
export function sandboxCheck({ driver, keys, audience }: SandboxSettings, parts: TrustParts): ProofCheck {
  const document = new TrustDocument<readonly AssertionKey[]>(keys, (bytes) => driverKeys(bytes, keys), parts)
  return {
    name: driver,
    nonce: 'required',
    async verify(proof: Proof, context: ProofContext): Promise<ProofVerdict> {
      const jws = readAssertion(proof.token)
      if (isStop(jws)) return jws
      const assertion = await verifyAssertion(jws, {
        keys: document,
        algorithms: ALGORITHMS,
        types: TYPES,
        audience,
        maxLifetimeSeconds: MAX_LIFETIME_SECONDS,
        clock: parts.clock,
      })
      return isStop(assertion) ? assertion : judgeStatement(assertion.claims, { driver, proof, context })
    },
  }
}

/** Fails at the start when the keys of a driver cannot be read. */
export async function requireDriverKeys(path: string): Promise<void> {
  driverKeys(await readFile(path), path)
}

function driverKeys(bytes: Uint8Array, path: string): readonly AssertionKey[] {
  const text = Buffer.from(bytes).toString('utf8')
  return readPublicKeys(text, path).map(({ kid, algorithm, key }) => ({ kid, alg: algorithm.name, key }))
}

interface SandboxProof {
  readonly driver: string
  readonly proof: Proof
  readonly context: ProofContext
}

function judgeStatement(
  claims: Readonly<Record<string, unknown>>,
  { driver, proof, context }: SandboxProof,
): ProofVerdict {
  const { iss, sub, nonce, plat_ns, plat_agent, plat_session } = claims
  if (iss !== driver) return failed('the statement is of another driver')
  if (nonce !== proof.nonce) return failed('the statement carries another nonce')
  if (plat_ns !== context.namespace || plat_agent !== context.agent || plat_session !== context.session) {
    return failed('the statement is about another session')
  }
  if (typeof sub !== 'string' || !LINE.test(sub)) return failed('the statement names no sandbox')
  if (proof.sandbox !== null && proof.sandbox !== sub) return failed('the statement is about another sandbox')
  const stated: Partial<Record<(typeof STATED)[number], string>> = {}
  for (const name of STATED) {
    const value = claims[name]
    if (value === undefined) continue
    if (typeof value !== 'string' || !LINE.test(value)) return failed(`the statement has a bad "${name}"`)
    stated[name] = value
  }
  return established({ check: driver, sandbox: sub, attestation: 'signed-statement', ...stated })
}
