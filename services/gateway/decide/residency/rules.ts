import { hash } from 'node:crypto'
import { canonicalJson } from '@plat/core'
import { createRangeCheck, type Residency } from '@plat/http'
import {
  decodeSovereignty,
  residencyFault,
  type Sovereignty,
  type UpstreamPlacement,
} from '@plat/resources/sovereignty'
import type { Slot } from '../../call/index.ts'

/** Parsed rules of one sovereigntyPolicyFile; immutable. */
export interface Rules {
  /** Returns why data must not go to a place, as the end of a sentence about the place, or null if it may. */
  fault(place: UpstreamPlacement): string | null
  /** Returns the jurisdiction of sessions of a tier by their TrustTier, or null if it states none. */
  tierJurisdiction(tier: string): string | null
  /** Restrictions on dialed addresses; null: none. */
  readonly dial: Residency | null
  /** Retention of audit records in days; null: not stated. */
  readonly auditRetentionDays: number | null
}

/** Slot of the rules in the snapshot; null: no file is configured. */
export const residencySlot: Slot<Rules | null> = { name: 'residency', initial: null }

/** Rules in force until the file is loaded: everything is denied. */
export const closedRules: Rules = {
  fault: () => 'cannot be judged: sovereigntyPolicyFile cannot be read',
  tierJurisdiction: () => null,
  dial: { mark: 'closed', admits: () => false },
  auditRetentionDays: null,
}

/** Parses a file. Returns every problem if it is invalid. */
export function readRules(bytes: Uint8Array | null): { rules: Rules } | { problems: readonly string[] } {
  if (bytes === null) return { problems: ['no such file'] }
  const decoded = decodeSovereignty(bytes)
  if (!decoded.ok) return decoded
  try {
    return { rules: rulesOf(decoded.file) }
  } catch (error) {
    return { problems: [`allowedCIDRs: ${error instanceof Error ? error.message : 'not address ranges'}`] }
  }
}

/** Throws if an address range is malformed. */
function rulesOf(sovereignty: Sovereignty): Rules {
  const { allowedCIDRs = [], auditRetentionDays } = sovereignty
  const tiers = new Map(Object.entries(sovereignty.tierJurisdictions ?? {}))
  const mark = hash('sha256', canonicalJson(allowedCIDRs), 'hex')
  return {
    fault: (place) => residencyFault(sovereignty, place),
    tierJurisdiction: (tier) => tiers.get(tier) ?? null,
    dial: allowedCIDRs.length === 0 ? null : { mark, admits: createRangeCheck(allowedCIDRs) },
    auditRetentionDays: auditRetentionDays ?? null,
  }
}
