import { RefusalError } from '@plat/http/endpoints'
import type { Log } from '@plat/process'
import type { Nonces } from '../nonce/nonces.ts'
import type { Proof, ProofCheck, ProofContext, ProofVerdict, Substrate } from './check.ts'

/** The key that a proof must name. */
export interface ProofKey {
  /** Of the token that is minted; null: it is bound to none. */
  readonly jkt: string | null
  /** The session is attested: only a proof over a nonce of this key counts. */
  readonly attested: boolean
}

/** The enabled checks, applied to the proof of a mint request. */
export interface Proofs {
  /** The check of this name; throws `unknown proof check` (400) when it is not enabled. */
  check(name: string): ProofCheck
  /** Null for a mint without proof. Throws in the words of docs/spec/broker-api.md, "Errors": 400 unknown, 403 failed, 503 unreachable. */
  establish(proof: Proof | null, key: ProofKey, context: () => ProofContext): Promise<Substrate> | null
}

export interface ProofsOptions {
  /** A mint without proof is refused. */
  readonly requireProof: boolean
  readonly nonces: Nonces
  readonly log: Log
}

/** Throws when two checks have one name. */
export function createProofs(checks: readonly ProofCheck[], options: ProofsOptions): Proofs {
  const byName = new Map<string, ProofCheck>()
  for (const check of checks) {
    if (byName.has(check.name)) throw new Error(`the proof check ${check.name}is listed twice`)
    byName.set(check.name, check)
  }
  const checkOf = (name: string): ProofCheck => {
    const check = byName.get(name)
    if (check === undefined) throw new RefusalError(400, 'unknown proof check')
    return check
  }
  return {
    check: checkOf,
    establish(proof, key, context) {
      if (proof !== null) return establish(checkOf(proof.check), proof, { context: context(), key, ...options })
      if (options.requireProof || key.attested) throw new RefusalError(403, 'a proof is required')
      return null
    },
  }
}

async function establish(
  check: ProofCheck,
  proof: Proof,
  { context, key, nonces, log }: ProofsOptions & { readonly context: ProofContext; readonly key: ProofKey },
): Promise<Substrate> {
  if (key.attested && check.nonce !== 'required') {
    throw new RefusalError(403, 'proof failed: the session is attested, and this check proves nothing about a key')
  }
  await redeemNonce(check, proof, { key, nonces })
  const verdict = await judge(check, proof, { context, log })
  if (verdict.kind === 'failed') throw new RefusalError(403, `proof failed: ${verdict.reason}`)
  if (verdict.kind === 'unreachable') throw new RefusalError(503, `proof check unavailable: ${verdict.reason}`)
  return verdict.substrate
}

/** Redeemed first and once: a proof that fails has used its nonce up too. */
async function redeemNonce(
  check: ProofCheck,
  { nonce }: Proof,
  { key, nonces }: { readonly key: ProofKey; readonly nonces: Nonces },
): Promise<void> {
  if (check.nonce === 'none') {
    if (nonce !== null) throw new RefusalError(400, 'invalid proof: this check takes no nonce')
    return
  }
  if (check.nonce === 'optional' && nonce === null) return
  if (nonce === null || nonce === '') throw new RefusalError(403, 'proof failed: it carries no nonce')
  const use = await nonces.redeem(nonce)
  if (use?.check !== check.name) {
    throw new RefusalError(403, 'proof failed: its nonce is unknown, used, expired, or of another check')
  }
  if (use.jkt !== null ? use.jkt !== key.jkt : key.attested) {
    throw new RefusalError(403, 'proof failed: its nonce is not bound to the key of the token')
  }
}

/** A check that throws has established nothing, and the fault is not the caller's. */
async function judge(
  check: ProofCheck,
  proof: Proof,
  { context, log }: { readonly context: ProofContext; readonly log: Log },
): Promise<ProofVerdict> {
  try {
    return await check.verify(proof, context)
  } catch (error) {
    log.error({ err: error, check: check.name }, 'a proof check failed to run')
    return { kind: 'unreachable', reason: 'the check failed to run' }
  }
}
