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

/** What one sovereigntyPolicyFile asks, ready to be asked itself; immutable. */
export interface Rules {
  /** Why data must not go there, as the end of a sentence about the place; null: it may. */
  fault(place: UpstreamPlacement): string | null
  /** Returns the place of sessions of a tier, as their TrustTier states it; null when it states none. */
  tierJurisdiction(tier: string): string | null
  /** What the dialer asks of addresses; null: nothing. */
  readonly dial: Residency | null
  /** Days for which audit records are kept; null: nobody says. */
  readonly auditRetentionDays: number | null
}

/** Where the rules stand in the snapshot; null: no file is configured. */
export const residencySlot: Slot<Rules | null> = { name: 'residency', initial: null }

/** In force until the file was read: data may go nowhere. */
export const closedRules: Rules = {
  fault: () => 'cannot be judged: sovereigntyPolicyFile cannot be read',
  tierJurisdiction: () => null,
  dial: { mark: 'closed', admits: () => false },
  auditRetentionDays: null,
}

/** The rules of a file, or every reason why it is refused. */
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

/** Throws when a range is malformed. */
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
