import { isObject } from '@plat/core'
import type { Proof, ProofCheck, ProofContext, ProofVerdict } from './check.ts'
import { readAssertion, verifyAssertion } from './jwt/assertion.ts'
import { type AssertionKey, readKeySet, signingKeys } from './jwt/keys.ts'
import { type AllowList, allowList } from './parts/allow-list.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop } from './parts/verdict.ts'

/** Google's instance identity tokens live one hour. */
const MAX_LIFETIME_SECONDS = 3600
const ALGORITHMS: ReadonlySet<string> = new Set(['RS256'])
const TYPES: ReadonlySet<string> = new Set(['', 'jwt'])

export interface GcpSettings {
  /** URL or file of the key set. */
  readonly keys: string
  readonly issuer: string
  /** The instance requests a token with audience `<audience>/<nonce>`. */
  readonly audience: string
  /** Project IDs that may prove: `<project>` or `<project>=<namespace>`. */
  readonly projects: readonly string[]
}

/** Proof by the identity token of a Compute Engine instance, in its full format, whose audience carries the nonce. */
export function gcpIdentityCheck(settings: GcpSettings, parts: TrustParts): ProofCheck {
  const projects = allowList('gcp-identity-projects', settings.projects)
  const keys = new TrustDocument<readonly AssertionKey[]>(
    settings.keys,
    (bytes) => signingKeys(readKeySet(bytes), ['sig', undefined]),
    parts,
  )
  return {
    name: 'gcp-identity',
    nonce: 'required',
    async verify({ token, nonce }: Proof, context: ProofContext): Promise<ProofVerdict> {
      const jws = readAssertion(token)
      if (isStop(jws)) return jws
      const assertion = await verifyAssertion(jws, {
        keys,
        algorithms: ALGORITHMS,
        types: TYPES,
        audience: `${settings.audience}/${nonce}`,
        maxLifetimeSeconds: MAX_LIFETIME_SECONDS,
        clock: parts.clock,
      })
      if (isStop(assertion)) return assertion
      if (assertion.claims.iss !== settings.issuer) return failed('the token is of another issuer')
      return judgeInstance(assertion.claims, context, projects)
    },
  }
}

/** The claim `google.compute_engine` is only there in the full format; without it any service account could be behind the token. */
function judgeInstance(
  { google }: Readonly<Record<string, unknown>>,
  context: ProofContext,
  projects: AllowList,
): ProofVerdict {
  const engine = isObject(google) ? google.compute_engine : null
  if (!isObject(engine)) return failed('the token names no instance: request it with format=full')
  const { project_id: project, zone, instance_id: instance } = engine
  if (typeof project !== 'string' || typeof zone !== 'string' || typeof instance !== 'string') {
    return failed('the token names no instance')
  }
  if (!projects(project, context.namespace)) return failed('the project may not prove this session')
  return established({
    check: 'gcp-identity',
    attestation: 'identity-token',
    platform: 'gcp',
    workload: `projects/${project}/zones/${zone}/instances/${instance}`,
  })
}
