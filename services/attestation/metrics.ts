import { type PoolObservers, type PoolOf, poolsOf } from '@plat/core'
import { createPoolMeter, type MetricRow, type Registry } from '@plat/metrics'

/** Why evidence released nothing: code of the refusal, and label `reason`. */
const REASONS = [
  'invalid_request',
  'unknown_release',
  'invalid_key',
  'other_key',
  'busy',
  'invalid_nonce',
  'evidence_refused',
  'measurement_refused',
  'platform_changed',
  'session_revoked',
  'unavailable',
  'internal',
] as const

/** A renewal also presents the session's token; `lapsed`: it was not requested in time. */
const RENEWAL_REASONS = [...REASONS, 'invalid_token', 'lapsed'] as const

/** Pools that callers share. */
const POOLS = poolsOf('attestation')

const attestation = { area: 'Attestation service', feature: '' } as const

/** Every series of the attestation service (docs/spec/gateway.md, "Metrics"). */
export const attestationMetrics = [
  {
    name: 'plat_attest_success_total',
    type: 'counter',
    labels: {},
    help: 'Releases that were redeemed with evidence',
    ...attestation,
  },
  {
    name: 'plat_attest_failure_total',
    type: 'counter',
    labels: { reason: REASONS },
    help: 'Redemptions that were refused, by the reason',
    ...attestation,
  },
  {
    name: 'plat_attest_releases_created_total',
    type: 'counter',
    labels: {},
    help: 'Releases that were created',
    ...attestation,
  },
  {
    name: 'plat_attest_renewal_success_total',
    type: 'counter',
    labels: {},
    help: 'Tokens that were renewed with fresh evidence',
    ...attestation,
  },
  {
    name: 'plat_attest_renewal_failure_total',
    type: 'counter',
    labels: { reason: RENEWAL_REASONS },
    help: 'Renewals that were refused, or not requested before the token ended, by the reason',
    ...attestation,
  },
  {
    name: 'plat_attest_releases_pending',
    type: 'gauge',
    labels: {},
    help: 'Releases that wait for evidence',
    ...attestation,
  },
  {
    name: 'plat_attest_renewals_active',
    type: 'gauge',
    labels: {},
    help: 'Sessions that hold a token and renew it',
    ...attestation,
  },
  {
    name: 'plat_attest_pool_used',
    type: 'gauge',
    labels: { pool: POOLS },
    help: 'Units of a shared pool that callers hold',
    ...attestation,
  },
  {
    name: 'plat_attest_pool_refusals_total',
    type: 'counter',
    labels: { pool: POOLS, bound: ['share', 'total'] },
    help: 'Refusals by a shared pool, by the bound that was met: the share of one caller, or the total',
    ...attestation,
  },
  {
    name: 'plat_attest_overloaded',
    type: 'gauge',
    labels: {},
    help: 'Whether new releases and redemptions are refused because memory is short or the event loop is late',
    ...attestation,
  },
] as const satisfies readonly MetricRow[]

export type AttestationRegistry = Registry<typeof attestationMetrics>

export type AttestationPools = PoolObservers<PoolOf<'attestation'>>

/** The pools of the service as rows of its metric table. */
export function attestationPools(registry: AttestationRegistry): AttestationPools {
  return createPoolMeter(registry.gauge('plat_attest_pool_used'), registry.counter('plat_attest_pool_refusals_total'))
}
