import { followFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { EndpointJurisdictions } from '@plat/resources/regions/endpoint'
import type { UpstreamPlacement } from '@plat/resources/sovereignty'
import type { Snapshot, Snapshots } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { residentDialer } from './dialer.ts'
import { closedRules, type Rules, readRules, residencySlot } from './rules.ts'
import { type PlacesOf, residentResolve } from './stage.ts'

/** Minimum retention of logs of a high-risk AI system (Regulation (EU) 2024/1689, articles 19 and 26: six months), in days. */
const LEAST_RETENTION_DAYS = 184

export interface ResidencyOptions {
  readonly config: {
    /** Empty: no restriction. */
    readonly sovereigntyPolicyFile: string
    /** Jurisdictions of key sets and token endpoints by origin; default: none. */
    readonly endpointJurisdictions?: EndpointJurisdictions
    readonly policyReloadSeconds: number
  }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

type Resolve = Stage<'resolve', 'identity', 'target'>

/** Data residency (docs/spec/gateway.md, `sovereigntyPolicyFile`). */
export interface ResidencyFeature {
  /** Wraps a dialer so that it only reaches compliant destinations. */
  dialer(inner: Dialer): Dialer
  /** Wraps the resolve stage so that only compliant targets are reached. */
  resolve(inner: Resolve, placesOf: PlacesOf): Resolve
  /** Returns why data must not go to a place by the rules of this snapshot, or null if it may. */
  fault(snapshot: Snapshot, place: UpstreamPlacement): string | null
  /** Returns the jurisdiction of sessions of a tier by the rules of this snapshot, or null if unknown. */
  tierJurisdiction(snapshot: Snapshot, tier: string): string | null
  /** Loads the file. Call before anything is dialed. */
  check(): Promise<void>
  close(): void
}

/** Creates the feature. Without a file it returns dialer and stage unchanged. */
export function createResidency(options: ResidencyOptions): ResidencyFeature {
  return options.config.sovereigntyPolicyFile === '' ? unbound : boundTo(options)
}

const unbound: ResidencyFeature = {
  dialer: (inner) => inner,
  resolve: (inner) => inner,
  fault: () => null,
  tierJurisdiction: () => null,
  check: async () => {},
  close() {},
}

/** Blocks everything until the file is loaded. An invalid file later leaves the previous rules in force. */
function boundTo({ config, snapshots, clock, log, metrics }: ResidencyOptions): ResidencyFeature {
  const path = config.sovereigntyPolicyFile
  const publish = (rules: Rules) => snapshots.publish(residencySlot, rules)
  const refuse = (problems: readonly string[]) => {
    const closed = snapshots.current.get(residencySlot) === closedRules
    const meanwhile = closed ? 'nothing may be reached' : 'the previous rules remain in force'
    log.error({ path, problems }, `sovereigntyPolicyFile is refused: ${meanwhile}`)
  }
  const watch = followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: readRules,
    publish({ rules }: { readonly rules: Rules }) {
      publish(rules)
      const { auditRetentionDays: days } = rules
      const isBelow = days !== null && days < LEAST_RETENTION_DAYS
      metrics.gauge('plat_gateway_audit_retention_below_ai_act').set({}, Number(isBelow))
      log.info({ path }, 'sovereignty rules loaded')
    },
    refuse,
  })
  publish(closedRules)
  return {
    dialer: (inner) => residentDialer(inner, () => snapshots.current.get(residencySlot), config.endpointJurisdictions),
    resolve: (inner, placesOf) => residentResolve(inner, snapshots, placesOf),
    fault: (snapshot, place) => snapshot.get(residencySlot)?.fault(place) ?? null,
    tierJurisdiction: (snapshot, tier) => snapshot.get(residencySlot)?.tierJurisdiction(tier) ?? null,
    check: () => watch.check(),
    close: () => watch.stop(),
  }
}
