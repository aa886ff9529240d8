import { isAddressRange } from '@plat/http'
import type { Manifest } from '@plat/resources'
import type { Sovereignty } from '@plat/resources/sovereignty'
import { type Problem, problemLine } from '../validate/problem.ts'
import { type Declared, sorted } from './declared.ts'

/** Refuses every upstream: ISO 3166 never assigns ZZ, and upstreams without a jurisdiction are refused as well. */
const NOWHERE: Sovereignty = { version: 1, requireJurisdiction: true, allowedJurisdictions: ['ZZ'] }

/** The gateway's sovereigntyPolicyFile: the SovereigntyPolicy, and where sessions of each TrustTier run. */
export function renderSovereignty({ sovereignty, tiers }: Pick<Declared, 'sovereignty' | 'tiers'>): {
  file: Sovereignty
  refused: string[]
} {
  const { file, refused } = renderRules({ sovereignty })
  const tierJurisdictions = Object.fromEntries(
    sorted(tiers).flatMap(({ metadata, spec }) =>
      spec.jurisdiction === undefined ? [] : [[metadata.name, spec.jurisdiction]],
    ),
  )
  return { file: Object.keys(tierJurisdictions).length === 0 ? file : { ...file, tierJurisdictions }, refused }
}

/**
 * The rules of the SovereigntyPolicy. Where there is none, everything complies. There can be one: of several, as of one that cannot be
 * enforced, none can be left out, so nothing complies.
 */
function renderRules({ sovereignty }: Pick<Declared, 'sovereignty'>): { file: Sovereignty; refused: string[] } {
  const [only, ...others] = sorted(sovereignty)
  if (only === undefined) return { file: { version: 1 }, refused: [] }
  const problems = others.length > 0 ? severalProblems(sovereignty) : rangeProblems(only)
  return problems.length > 0
    ? { file: NOWHERE, refused: problems }
    : { file: { version: 1, ...only.spec }, refused: [] }
}

/** The rules for upstreams in the format of the file; null if there are none. */
export function sovereigntyInForce(declared: Pick<Declared, 'sovereignty'>): Sovereignty | null {
  return declared.sovereignty.length === 0 ? null : renderRules(declared).file
}

function severalProblems(all: Declared['sovereignty']): string[] {
  const why = 'there is more than one SovereigntyPolicy: every upstream is refused until there is one'
  return sorted(all).map((policy) => problemLine(policy, { path: 'metadata.name', why }))
}

function rangeProblems(policy: Manifest<'SovereigntyPolicy'>): string[] {
  const problems: Problem[] = (policy.spec.allowedCIDRs ?? []).flatMap((range, index) =>
    isAddressRange(range)
      ? []
      : [{ path: `allowedCIDRs[${index}]`, why: 'not an address range: every upstream is refused' }],
  )
  return problems.map((problem) => problemLine(policy, problem))
}
